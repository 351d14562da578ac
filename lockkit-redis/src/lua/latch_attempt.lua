-- Passes a latch if it is open, or takes a place in line before it. After hall.lua. No flags: not under
-- memory pressure, for it makes something new.
--
-- KEYS  1 c, 2 q, 3 w
-- ARGV  1 attempt, 2 lease in ms, 3 `f` fair | `b` barging, 4 `w` to wait in line, 5 client, 6 label
-- Gives 1 if it passes, else minus the ms after which to ask again. Who was in line when the latch
-- opened passes from then on, until it is released; of whoever else passes nothing is left.
local hall = { q = KEYS[2], w = KEYS[3], now = now_ms() }
local attempt, ttl = ARGV[1], tonumber(ARGV[2])
local place = place_of(hall, attempt)
if place then
  if match(place.flags, 'p') then
    return 1
  end
  line_up(hall, attempt, place)
elseif call('HGET', KEYS[1], 'left') == '0' then
  return 1
elseif ARGV[4] == 'w' then
  sweep(hall)
  line_up(hall, attempt, {
    seq = number_behind(hall), ttl = ttl, since = format('%d', hall.now), flags = ARGV[3],
    mode = 'l', client = ARGV[5], stamp = '0', label = ARGV[6],
  })
end
return -ttl
