-- Lets a mutex go, and tells nobody. Flags: allow-oom.
--
-- KEYS  1 hold
-- ARGV  1 attempt
-- Gives 1 if it was held under this attempt, else 0.
local held = redis.call('GET', KEYS[1])
if held and string.sub(held, 2, 17) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0
