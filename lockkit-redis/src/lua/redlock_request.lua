-- Asks the holder to let go, on one node. Flags: allow-oom.
--
-- KEYS  1 hold
-- ARGV  1 inbox prefix, 2 key of the resource
-- Gives the token of the hold that was asked; 0 if nobody holds it here, or its hold is detached.
local held = redis.call('GET', KEYS[1])
if not held then
  return 0
end
local attempt = string.sub(held, 2, 17)
local token, before, flags, client, label =
  string.match(held, '^(%d+)(:%d+:%d+:%d+:%d+:)([-%a]*):(%w*):(.*)$', 18)
if not token then
  return redis.error_reply('CORRUPT the hold is of another version')
end
if token == '0' or string.find(flags, 'd', 1, true) then
  return 0
end
if not string.find(flags, 'a', 1, true) then
  local value = '1' .. attempt .. token .. before .. flags .. 'a:' .. client .. ':' .. label
  local left = redis.call('PTTL', KEYS[1])
  if left < 1 then
    return 0
  end
  redis.call('SET', KEYS[1], value, 'PX', left)
end
if client ~= '' then
  redis.pcall('PUBLISH', ARGV[1] .. client, 'a' .. attempt .. ARGV[2])
end
return tonumber(token)
