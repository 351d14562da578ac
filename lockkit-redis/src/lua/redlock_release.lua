-- Lets a hold go on one node. Flags: allow-oom.
--
-- KEYS  1 hold
-- ARGV  1 attempt, 2 the round to clean up after or empty for all, 3 inbox prefix and
--       4 key of the resource if it is taken away by an operator, else empty
-- Gives 1 if it was confirmed here, 2 if it was only taken, 0 if it was not here.
local held = redis.call('GET', KEYS[1])
if not held or string.sub(held, 2, 17) ~= ARGV[1] then
  return 0
end
local token, round, client = string.match(held, '^(%d+):(%d+):%d+:%d+:%d+:[-%a]*:(%w*):', 18)
if not token then
  return redis.error_reply('CORRUPT the hold is of another version')
end
if ARGV[2] ~= '' and tonumber(round) > tonumber(ARGV[2]) then
  return 0
end
if ARGV[4] ~= '' and client ~= '' then
  redis.pcall('PUBLISH', ARGV[3] .. client, 'e' .. ARGV[1] .. ARGV[4])
end
redis.call('DEL', KEYS[1])
return token == '0' and 2 or 1
