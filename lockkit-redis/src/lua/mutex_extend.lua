-- Gives a held mutex an expiry of its own. Flags: allow-oom.
--
-- KEYS  1 hold
-- ARGV  1 attempt, 2 lease in ms from now
-- Gives the lease, or 0 if it is not held under this attempt.
local held = redis.call('GET', KEYS[1])
if not held or string.sub(held, 2, 17) ~= ARGV[1] then
  return 0
end
local fence, since, flags, rest = string.match(held, '^(%d+):%d+:(%d+):([-%a]*):(.*)$', 18)
if not fence then
  return redis.error_reply('CORRUPT the hold is of another version')
end
if not string.find(flags, 'd', 1, true) then
  flags = flags .. 'd'
end
local value = '1' .. ARGV[1] .. table.concat({ fence, ARGV[2], since, flags, rest }, ':')
redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.call('SET', KEYS[1], value, 'PX', ARGV[2])
return tonumber(ARGV[2])
