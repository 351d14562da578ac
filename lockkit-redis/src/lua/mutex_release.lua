-- Lets a mutex go, or a place in line for it, and lets in who comes next. Flags: allow-oom.
--
-- KEYS  1 hold, 2 queue, 3 places, 4 fence counter of the bucket, 5 server of the bucket
-- ARGV  1 attempt, 2 run, 3 inbox prefix, 4 key of the resource if it is taken away by an operator
-- Gives 1 if there was a hold or a place, else 0.
local call = redis.call
local held = call('GET', KEYS[1])
local ours = held and string.sub(held, 2, 17) == ARGV[1]
if ours and ARGV[2] == '' and ARGV[4] == '' and call('EXISTS', KEYS[2]) == 0 then
  call('DEL', KEYS[1])
  return 1
end
