-- Asks the holder of a mutex to let go. Flags: allow-oom.
--
-- KEYS  1 hold
-- ARGV  1 inbox prefix, 2 key of the resource
-- Gives how many were asked: 1, or 0 if nobody holds it or its hold is detached.
local held = redis.call('GET', KEYS[1])
if not held then
  return 0
end
local attempt = string.sub(held, 2, 17)
local before, flags, client, label = string.match(held, '^(%d+:%d+:%d+:)([-%a]*):(%w*):(.*)$', 18)
if not before then
  return redis.error_reply('CORRUPT the hold is of another version')
end
if string.find(flags, 'd', 1, true) then
  return 0
end
if not string.find(flags, 'a', 1, true) then
  local left = redis.call('PTTL', KEYS[1])
  if left < 0 then
    -- Somebody took the expiry away.
    left = tonumber(string.match(before, '^%d+:(%d+)'))
  end
  left = math.max(left, 1)
  redis.call('PEXPIRE', KEYS[1], left)
  redis.call('SET', KEYS[1], '1' .. attempt .. before .. flags .. 'a:' .. client .. ':' .. label, 'PX', left)
end
if client ~= '' then
  redis.pcall('PUBLISH', ARGV[1] .. client, 'a' .. attempt .. ARGV[2])
end
return 1
