-- Renews holds of mutexes. Never brings one back. Flags: allow-oom.
--
-- KEYS  the hold of each
-- ARGV  the attempt of each
-- Gives for each its lease in ms, or 0 if it is not held under this attempt.
local call, sub, match = redis.call, string.sub, string.match
local answers = {}
for i = 1, #KEYS do
  local held = call('GET', KEYS[i])
  local answer = 0
  if held and sub(held, 2, 17) == ARGV[i] then
    local ttl = match(held, '^%d+:(%d+)', 18)
    if call('PEXPIRE', KEYS[i], ttl) == 1 then
      answer = tonumber(ttl)
    end
  end
  answers[i] = answer
end
return answers
