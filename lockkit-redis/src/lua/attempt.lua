-- Takes a read-write lock, permits, or a segment, or a place in line for it. After hall.lua and turn.lua. No
-- flags: not under memory pressure, for it makes something new.
--
-- KEYS  1 h, 2 x, 3 q, 4 w, 5 z, 6 fence counter of the bucket, 7 server of the bucket
-- ARGV  1 attempt, 2 lease in ms, 3 mode, 4 `f` fair | `b` barging, 5 `w` to wait in line, 6 size or
--       '', 7 run, 8 inbox prefix, 9 client, 10 label, 11 stamp
-- Gives the fence (0 or more) if held, {fence, segment} of a segmented lock; else less than 0: minus
-- the ms after which to ask again; {'MISMATCH', stored} for a newcomer with another size, and
-- {'LOWERED', stored} for a place that asks for more permits than there are now.
local hall = open(1, ARGV[7], ARGV[8])
local attempt, ttl, mode, order = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4]

local function grant(fence, held)
  return sub(held, 1, 1) == 'o' and { fence, number_of(held) } or fence
end

settle(hall)
local record = hall.n > 0 and call('HGET', hall.h, attempt)
if record then
  -- The answer to an earlier request was lost, or the message about it.
  local hold = read_hold(record)
  call('ZADD', hall.x, hall.now + hold.ttl, attempt)
  keep_holds(hall, hold.ttl)
  return grant(hold.fence, hold.mode)
end

local place = place_of(hall, attempt)
if place then
  place.client, place.stamp = ARGV[9], ARGV[11]
  line_up(hall, attempt, place)
end
-- First whoever is before: a holder may have died, or the first in line.
advance(hall, attempt)
if place then
  record = call('HGET', hall.h, attempt)
  if record then
    local hold = read_hold(record)
    return grant(hold.fence, hold.mode)
  end
end

local size = ARGV[6] ~= '' and call('GET', hall.z)
if size then
  hall.size = tonumber(size)
  if not place and size ~= ARGV[6] then
    return { 'MISMATCH', size }
  elseif place and sub(mode, 1, 1) == 'p' and number_of(mode) > hall.size then
    return { 'LOWERED', size }
  end
elseif ARGV[6] ~= '' then
  hall.size = tonumber(ARGV[6])
end

if not place then
  -- Nobody in line wants a segment that is still free: whoever did has it by now.
  local passes = order == 'b' or ARGV[3]:find('^[ao]') or hall.is_nobody_waiting
  local held = passes and fits(hall, mode, {})
  if (held or ARGV[5] == 'w') and ARGV[6] ~= '' and not size then
    call('SET', hall.z, ARGV[6])
  end
  if held then
    local fence = token(hall, held)
    add(hall, attempt, held, ttl, ARGV[9], ARGV[10], fence)
    return grant(fence, held)
  end
  if ARGV[5] == 'w' then
    sweep(hall)
    line_up(hall, attempt, {
      seq = number_behind(hall), ttl = ttl, since = format('%d', hall.now), flags = order,
      mode = mode, client = ARGV[9], stamp = ARGV[11], label = ARGV[10],
    })
  end
end
return -math.max(first_end(hall) or ttl, 1)
