-- Takes a mutex, or a place in line for it. Not under memory pressure: this makes something new.
--
-- KEYS  1 hold, 2 queue, 3 places, 4 fence counter of the bucket, 5 server of the bucket
-- ARGV  1 attempt, 2 lease in ms, 3 `b` new and barging | `f` new and fair | `a` asked before,
--       4 `w` to wait in line, 5 run (see hand_over), 6 `since:-:client:label`, 7 inbox prefix,
--       8 flag of a place, 9 stamp
-- Gives the fence (> 0) if held; else less than 0: minus what is left of the holder's lease, in ms.
local call = redis.call
local held = call('GET', KEYS[1])
local enters = not held and (ARGV[3] == 'b' or (ARGV[3] == 'f' and call('EXISTS', KEYS[2]) == 0))
if enters and ARGV[5] == '' then
  local number = call('INCR', KEYS[4])
  if number >= 1e12 then
    local value = '1' .. ARGV[1] .. string.format('%d', number) .. ':' .. ARGV[2] .. ':' .. ARGV[6]
    call('SET', KEYS[1], value, 'PX', ARGV[2])
    return number
  end
end
