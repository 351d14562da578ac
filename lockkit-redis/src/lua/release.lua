-- Lets holds and places in line of one resource go, and lets in who comes next. Also withdraws places
-- at a latch. After hall.lua and turn.lua. Flags: allow-oom.
--
-- KEYS  1 h, 2 x, 3 q, 4 w, 5 z, 6 fence counter of the bucket, 7 server of the bucket
-- ARGV  1 run, 2 inbox prefix, 3 key of the resource if they are taken away by an operator, else '';
--       then the attempts
-- Gives for each attempt 1 if there was a hold or a place, else 0.
local hall = open(1, ARGV[1], ARGV[2])
settle(hall)
local answers = {}
for i = 4, #ARGV do
  local attempt, done = ARGV[i], 0
  local record = call('HGET', hall.h, attempt)
  if record then
    if ARGV[3] ~= '' then
      -- Told first, then freed.
      local client = read_hold(record).client
      if client ~= '' then
        redis.pcall('PUBLISH', hall.inbox .. client, 'e' .. attempt .. ARGV[3])
      end
    end
    remove(hall, attempt, record)
    done = 1
  elseif place_of(hall, attempt) then
    call('HDEL', hall.w, attempt)
    call('ZREM', hall.q, attempt)
    done = 1
  end
  answers[#answers + 1] = done
end
advance(hall)
return answers
