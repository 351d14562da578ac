-- Takes a mutex, or a place in line for it. Not under memory pressure: this makes something new.
--
-- KEYS  1 hold, 2 fence counter of the bucket, 3 queue, 4 places, and with ARGV 5, 5 server of the bucket
-- ARGV  1 `1` and the attempt, 2 lease in ms, 3 `:lease:since:-:client:label`,
--       4 three letters (`b` new and barging | `f` new and fair | `a` asked before; `w` to wait in
--       line | `-`; flag of a place), stamp, `:`, eight letters of the master's name, inbox prefix,
--       5 run (see hand_over), if it has to be told
-- Gives the fence (> 0) if held; else less than 0: minus what is left of the holder's lease, in ms.
local call, byte = redis.call, string.byte
local held = call('GET', KEYS[1])
local how, waits = byte(ARGV[4], 1, 2)
local enters = not held and (how == 98 or how == 102 and call('EXISTS', KEYS[3]) == 0)
if enters and not KEYS[5] then
  local number = call('INCR', KEYS[2])
  if number >= 1e12 then
    call('SET', KEYS[1], ARGV[1] .. string.format('%d', number) .. ARGV[3], 'PX', ARGV[2])
    return number
  end
elseif held and not KEYS[5] and waits == 45 and how ~= 97 and byte(held) == 49 then
  local left = call('PTTL', KEYS[1])
  -- Longer than our own lease: perhaps the server's clock went back. See below.
  if left > 0 and left <= tonumber(ARGV[2]) then
    return -left
  end
end
