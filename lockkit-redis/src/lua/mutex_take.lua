-- Takes mutexes that are free. For those for which nobody was seen waiting: it asks nobody in line. No
-- flags: this makes something new.
--
-- KEYS  for each 1 hold, 2 fence counter of the bucket, which this connection has vouched for
-- ARGV  for each 1 `1` and the attempt, 2 lease in ms, 3 `:lease:since:-:client:label`
-- Gives for each its fence, or 0 if mutex_acquire has to look.
local call, format = redis.call, string.format
local fences = {}
for i = 1, #KEYS / 2 do
  local fence, arg, is_taken = call('INCR', KEYS[2 * i]), 3 * i, false
  if fence >= 1e12 then
    local value = ARGV[arg - 2] .. format('%d', fence) .. ARGV[arg]
    is_taken = call('SET', KEYS[2 * i - 1], value, 'NX', 'PX', ARGV[arg - 1])
  end
  fences[i] = is_taken and fence or 0
end
return fences
