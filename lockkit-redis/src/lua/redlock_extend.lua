-- Gives a confirmed hold an expiry of its own on one node. Flags: allow-oom.
--
-- KEYS  1 hold, 2 state of the node
-- ARGV  1 run of the server, 2 attempt, 3 lease in ms from now
-- Gives the token, -1 if it is not held here, 0 if this node has forgotten what it knew.
if redis.call('HGET', KEYS[2], 'run') ~= ARGV[1] then
  return 0
end
local held = redis.call('GET', KEYS[1])
if not held or string.sub(held, 2, 17) ~= ARGV[2] then
  return -1
end
local before, since, flags, rest = string.match(held, '^(%d+:%d+:%d+:)%d+:(%d+):([-%a]*):(.*)$', 18)
local token = before and tonumber(string.match(before, '^%d+'))
if not token then
  return redis.error_reply('CORRUPT the hold is of another version')
elseif token == 0 then
  return -1
end
if not string.find(flags, 'd', 1, true) then
  flags = flags .. 'd'
end
local value = '1' .. ARGV[2] .. before .. table.concat({ ARGV[3], since, flags, rest }, ':')
redis.call('SET', KEYS[1], value, 'PX', ARGV[3])
return token
