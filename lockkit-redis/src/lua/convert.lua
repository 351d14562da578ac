-- Makes a writer a reader, which lets in the readers who come next, or a reader a writer, if nobody
-- else reads and nobody waits. After hall.lua and turn.lua. Flags: allow-oom.
--
-- KEYS  1 h, 2 x, 3 q, 4 w, 5 z, 6 fence counter of the bucket, 7 server of the bucket
-- ARGV  1 attempt, 2 mode (`x` | `s`), 3 run, 4 inbox prefix
-- Gives the fence (0 or more) if it is held in that mode now, -1 if others hold or wait, -2 if it is
-- not held.
local hall = open(1, ARGV[3], ARGV[4])
local attempt, mode = ARGV[1], ARGV[2]
settle(hall)
advance(hall)
local record = call('HGET', hall.h, attempt)
if not record then
  return -2
end
local hold = read_hold(record)
if hold.mode == mode then
  return hold.fence
end
if mode == 'x' then
  if hall.n > 1 or not hall.is_nobody_waiting then
    return -1
  end
  hold.fence = next_number(hall)
end
hold.mode = mode
call('HSET', hall.h, attempt, write_hold(hold), 'm', mode, 'f', format('%d', hold.fence))
if mode == 's' then
  advance(hall)
end
return hold.fence
