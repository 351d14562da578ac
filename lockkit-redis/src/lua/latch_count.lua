-- Counts a latch down for a participant, once. At 0 everybody in line passes. After hall.lua. Flags:
-- allow-oom.
--
-- KEYS  1 c, 2 p, 3 q, 4 w
-- ARGV  1 participant, 2 inbox prefix
-- Gives how many are left, or -1 if the latch is not set. Each client with waiters is told once: `w` and
-- all their attempts, 16 bytes each.
local left = tonumber(call('HGET', KEYS[1], 'left') or -1)
if left <= 0 or call('SADD', KEYS[2], ARGV[1]) == 0 then
  return left
end
left = call('HINCRBY', KEYS[1], 'left', -1)
if left > 0 then
  return left
end
call('DEL', KEYS[2])
local now = now_ms()
local clients, waiting = {}, {}
while true do
  local line = attempts_in(KEYS[3], 0, CHUNK)
  if #line == 0 then
    break
  end
  for i, record in ipairs(call('HMGET', KEYS[4], unpack(line))) do
    local place = record and read_place(record)
    if place and place.expires > now then
      place.flags = place.flags .. 'p'
      call('HSET', KEYS[4], line[i], write_place(place))
      local others = waiting[place.client]
      if not others then
        others = {}
        waiting[place.client] = others
        clients[#clients + 1] = place.client
      end
      others[#others + 1] = line[i]
    elseif record then
      call('HDEL', KEYS[4], line[i])
    end
  end
  call('ZREMRANGEBYRANK', KEYS[3], 0, CHUNK - 1)
end
for _, client in ipairs(clients) do
  if client ~= '' then
    redis.pcall('PUBLISH', ARGV[2] .. client, 'w' .. table.concat(waiting[client]))
  end
end
return 0
