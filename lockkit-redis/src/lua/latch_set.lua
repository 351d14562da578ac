-- Sets the count of a latch, or unsets it. Flags: allow-oom.
--
-- KEYS  1 c, 2 p
-- ARGV  1 count; 0 unsets
-- Gives 1, or 0 while the latch is closed.
local left = redis.call('HGET', KEYS[1], 'left')
if left and left ~= '0' then
  return 0
end
redis.call('DEL', KEYS[1], KEYS[2])
if ARGV[1] ~= '0' then
  redis.call('HSET', KEYS[1], 'left', ARGV[1], 'of', ARGV[1])
end
return 1
