-- Lets mutexes go that nobody waits for. Flags: allow-oom.
--
-- KEYS  for each 1 hold, 2 queue
-- ARGV  for each `1` and the attempt
-- Gives for each 1, or 0 if mutex_release has to look.
local call, sub = redis.pcall, string.sub
local done = {}
for i = 1, #ARGV do
  local held = call('GET', KEYS[2 * i - 1])
  -- Something else in place of a hold is a table here, and costs no other of the batch.
  local is_ours = type(held) == 'string' and sub(held, 1, 17) == ARGV[i]
  if is_ours and call('EXISTS', KEYS[2 * i]) == 0 then
    done[i] = call('DEL', KEYS[2 * i - 1])
  else
    done[i] = 0
  end
end
return done
