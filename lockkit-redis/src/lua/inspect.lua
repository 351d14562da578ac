-- Who holds and who waits for a resource of any kind. After hall.lua. Flags: no-writes.
--
-- KEYS  1 h, 2 x, 3 q, 4 w, 5 z, 6 c, 7 fence counter of the bucket; for a mutex, 1 is the hold
-- ARGV  1 `m` for a mutex, else ''
-- Gives {now in ms, fence counter or '', size or '', left of a latch or '', its count or '', holders,
-- waiters}: holders as attempt, ms left, and record (of a mutex without mode), in turn; waiters as
-- attempt and record in turn, first in line first. Only who lives.
local now = now_ms()
local holders, waiters = {}, {}
if ARGV[1] == 'm' then
  local held = call('GET', KEYS[1])
  if held then
    if sub(held, 1, 1) ~= '1' then
      corrupt()
    end
    holders = { sub(held, 2, 17), call('PTTL', KEYS[1]), sub(held, 18) }
  end
else
  local ends = call('ZRANGEBYSCORE', KEYS[2], '(' .. format('%d', now), '+inf', 'WITHSCORES')
  for i = 1, #ends, 2 do
    local record = call('HGET', KEYS[1], ends[i])
    if record then
      holders[#holders + 1] = ends[i]
      holders[#holders + 1] = ends[i + 1] - now
      holders[#holders + 1] = record
    end
  end
end
local start = 0
while true do
  local line = attempts_in(KEYS[3], start, CHUNK)
  if #line == 0 then
    break
  end
  for i, record in ipairs(call('HMGET', KEYS[4], unpack(line))) do
    if record and read_place(record).expires > now then
      waiters[#waiters + 1] = line[i]
      waiters[#waiters + 1] = record
    end
  end
  start = start + CHUNK
end
local latch = call('HMGET', KEYS[6], 'left', 'of')
return {
  now, call('GET', KEYS[7]) or '', call('GET', KEYS[5]) or '', latch[1] or '', latch[2] or '', holders,
  waiters,
}
