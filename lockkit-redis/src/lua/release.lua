-- Lets a hold or a place in line go, and lets in who comes next. Also withdraws a place at a latch.
-- After hall.lua and turn.lua. Flags: allow-oom.
--
-- KEYS  1 h, 2 x, 3 q, 4 w, 5 z, 6 fence counter of the bucket, 7 server of the bucket
-- ARGV  1 attempt, 2 run, 3 inbox prefix, 4 key of the resource if it is taken away by an operator,
--       else ''
-- Gives 1 if there was a hold or a place, else 0.
local hall = open(1, ARGV[2], ARGV[3])
local attempt, done = ARGV[1], 0
settle(hall)
local record = hall.n > 0 and call('HGET', hall.h, attempt)
if record then
  local client = read_hold(record).client
  if ARGV[4] ~= '' and client ~= '' then
    -- Told first, then freed.
    redis.pcall('PUBLISH', hall.inbox .. client, 'e' .. attempt .. ARGV[4])
  end
  remove(hall, attempt, record)
  done = 1
elseif place_of(hall, attempt) then
  call('HDEL', hall.w, attempt)
  call('ZREM', hall.q, attempt .. PAD)
  hall.is_any_gone = true
  done = 1
end
advance(hall)
return done
