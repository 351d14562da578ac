-- Sets the count of a latch, or unsets it. Flags: allow-oom.
--
-- KEYS  1 c, 2 p
-- ARGV  1 count; 0 unsets, 2 id of this setting, the same if it is repeated
-- Gives 1, or 0 while the latch is closed.
local latch = redis.call('HMGET', KEYS[1], 'left', 'by')
if latch[2] == ARGV[2] then
  -- The answer was lost. What was counted since then counts, even if that was all.
  return 1
end
if latch[1] and latch[1] ~= '0' then
  return 0
end
redis.call('DEL', KEYS[1], KEYS[2])
if ARGV[1] ~= '0' then
  redis.call('HSET', KEYS[1], 'left', ARGV[1], 'of', ARGV[1], 'by', ARGV[2])
end
return 1
