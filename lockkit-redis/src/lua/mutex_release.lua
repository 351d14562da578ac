-- Lets a mutex go, or a place in line for it, and lets in who comes next. Flags: allow-oom.
--
-- KEYS  1 hold, 2 fence counter of the bucket, 3 queue, 4 places, and with a run, 5 server of the
--       bucket
-- ARGV  1 `1` and the attempt, 2 eight letters of the master's name and the inbox prefix; then, if an
--       operator takes it away, key of the resource; then, if it has to be told, run (see hand_over)
-- Gives 1 if there was a hold or a place, else 0.
local call = redis.call
local held = call('GET', KEYS[1])
local ours = held and string.sub(held, 1, 17) == ARGV[1]
local first
if ours and not ARGV[3] then
  first = call('ZPOPMIN', KEYS[3])
  if not first[1] then
    call('DEL', KEYS[1])
    return 1
  end
end
