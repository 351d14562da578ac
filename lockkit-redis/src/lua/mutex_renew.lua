-- Renews holds of mutexes. Never brings one back. Flags: allow-oom.
--
-- KEYS  the hold of each
-- ARGV  the attempt of each
-- Gives for each its lease in ms, as {it} if its holder is asked to let go, or 0 if it is not held under
-- this attempt.
local call, sub, match = redis.call, string.sub, string.match

local function renew(hold, attempt)
  local held = call('GET', hold)
  if not held or sub(held, 2, 17) ~= attempt then
    return 0
  end
  local ttl, asked = match(held, '^%d+:(%d+):%d+:%-?(a?)', 18)
  ttl = ttl and call('PEXPIRE', hold, ttl) == 1 and tonumber(ttl) or 0
  return asked == 'a' and { ttl } or ttl
end

local answers = {}
for i = 1, #KEYS do
  local done, answer = pcall(renew, KEYS[i], ARGV[i])
  if not done and not match(answer.err or answer, 'WRONGTYPE') then
    error(answer, 0)
  end
  -- Something else in place of a hold costs that one, and no other of the batch.
  answers[i] = done and answer or 0
end
return answers
