-- Phase 2 on one node: writes the token, if the hold is still that of this round and everybody before
-- it had a lower one. Flags: allow-oom.
--
-- KEYS  1 hold, 2 state of the node
-- ARGV  1 run of the server, 2 attempt, 3 lease in ms, 4 round, 5 bucket, 6 token
-- Gives 1 if it is confirmed, -1 if it is refused, 0 if this node has forgotten what it knew.
local call = redis.call
local node = call('HMGET', KEYS[2], 'run', ARGV[5])
if node[1] ~= ARGV[1] then
  return 0
end
local held = call('GET', KEYS[1])
if not held or string.sub(held, 2, 17) ~= ARGV[2] then
  return -1
end
local own, round, base, tail = string.match(held, '^(%d+):(%d+):(%d+):%d+:(.*)$', 18)
if not own then
  return redis.error_reply('CORRUPT the hold is of another version')
end
local token = tonumber(ARGV[6])
-- The counter as it was when this round took the hold. Others of the bucket may have raised it since;
-- nobody can have been confirmed for this name.
if round ~= ARGV[4] or tonumber(base) >= token or tonumber(own) > token then
  return -1
end
local value = table.concat({ ARGV[6], round, base, ARGV[3], tail }, ':')
call('SET', KEYS[1], '1' .. ARGV[2] .. value, 'PX', ARGV[3])
if tonumber(node[2] or 0) < token then
  call('HSET', KEYS[2], ARGV[5], ARGV[6])
end
return 1
