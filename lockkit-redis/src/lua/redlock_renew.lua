-- Renews holds on one node: phase 2 again, for holds that were confirmed. Never brings one back.
-- Flags: allow-oom.
--
-- KEYS  1 state of the node, 2.. the hold of each
-- ARGV  1 run of the server, 2.. the attempt of each
-- Gives for each `token:lease:flags`, or an empty text if it is not held here; an empty list if this
-- node has forgotten what it knew.
local call, sub, match = redis.call, string.sub, string.match
local answers = {}
if call('HGET', KEYS[1], 'run') ~= ARGV[1] then
  return answers
end
for i = 2, #KEYS do
  local held = call('GET', KEYS[i])
  local answer = ''
  if held and sub(held, 2, 17) == ARGV[i] then
    local token, lease, flags = match(held, '^(%d+):%d+:%d+:(%d+):%d+:([-%a]*):', 18)
    if token and token ~= '0' and call('PEXPIRE', KEYS[i], lease) == 1 then
      answer = token .. ':' .. lease .. ':' .. flags
    end
  end
  answers[i - 1] = answer
end
return answers
