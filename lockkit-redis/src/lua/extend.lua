-- Makes a hold live by an expiry of its own. After hall.lua. Flags: allow-oom.
--
-- KEYS  1 h, 2 x
-- ARGV  1 attempt, 2 lease in ms from now
-- Gives the lease, or 0 if it is not held.
local hall = { h = KEYS[1], x = KEYS[2], now = now_ms() }
local attempt, ttl = ARGV[1], tonumber(ARGV[2])
local record = call('HGET', hall.h, attempt)
if not record or tonumber(call('ZSCORE', hall.x, attempt) or 0) <= hall.now then
  return 0
end
local hold = read_hold(record)
hold.ttl = ttl
if not match(hold.flags, 'd') then
  hold.flags = hold.flags .. 'd'
end
call('HSET', hall.h, attempt, write_hold(hold))
call('ZADD', hall.x, hall.now + ttl, attempt)
keep_holds(hall, ttl)
return ttl
