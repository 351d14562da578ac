-- Sets the count of a latch, or unsets it. After nothing. Flags: allow-oom.
--
-- KEYS  1 c, 2 p
-- ARGV  1 count; 0 unsets, 2 a name of this request
-- Gives 1, also if it is sent again; 0 while the latch is closed.
local state = redis.call('HMGET', KEYS[1], 'left', 'by')
if state[1] and state[1] ~= '0' then
  return state[2] == ARGV[2] and 1 or 0
end
redis.call('DEL', KEYS[1], KEYS[2])
if ARGV[1] ~= '0' then
  redis.call('HSET', KEYS[1], 'left', ARGV[1], 'of', ARGV[1], 'by', ARGV[2])
end
return 1
