-- Changes how many permits or segments there are. After hall.lua and turn.lua. Flags: allow-oom.
--
-- KEYS  1 h, 2 x, 3 q, 4 w, 5 z, 6 fence counter of the bucket, 7 server of the bucket
-- ARGV  1 size, 2 `idle` only if nobody holds or waits | `any`, 3 run, 4 inbox prefix
-- Gives 1, or 0 if it is not idle. Whoever waits for more permits than there are now is told to look
-- again.
local hall = open(1, ARGV[3], ARGV[4])
settle(hall)
if ARGV[2] == 'idle' then
  advance(hall)
  if hall.n > 0 or not hall.is_nobody_waiting then
    return 0
  end
end
local size = tonumber(ARGV[1])
call('SET', hall.z, ARGV[1])
hall.size = size
local start = 0
while true do
  local line = attempts_in(hall.q, start, CHUNK)
  if #line == 0 then
    break
  end
  for i, record in ipairs(call('HMGET', hall.w, unpack(line))) do
    local place = record and read_place(record)
    if place and place.client ~= '' and sub(place.mode, 1, 1) == 'p' and number_of(place.mode) > size then
      redis.pcall('PUBLISH', hall.inbox .. place.client, 'w' .. line[i])
    end
  end
  start = start + CHUNK
end
advance(hall)
return 1
