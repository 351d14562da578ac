-- Renews holds and places in line, of several resources. Never brings one back. After hall.lua. Flags:
-- allow-oom.
--
-- KEYS  h, x, q, w of each
-- ARGV  1 stamp, then the attempt of each
-- Gives for each its lease in ms if it holds, as {it} if its holder is asked to let go; minus its lease if
-- it is in line, as {it} if the line does not move by itself; or 0 if it is gone.
local now = now_ms()
local answers, kept, told = {}, {}, {}

-- Many holds of one resource need its keys kept only once.
local function keep_once(hall, ttl)
  if (kept[hall.h] or 0) < ttl then
    kept[hall.h] = ttl
    keep_holds(hall, ttl)
  end
end

-- Whether a lease has run out that keeps others waiting: that of a hold, or of the first in line. It may
-- have been shorter than what the waiters last saw. One of them is enough: whoever asks lets in who
-- comes next.
local function is_stuck(hall)
  if told[hall.h] then
    return false
  end
  told[hall.h] = true
  local hold = call('ZRANGE', hall.x, 0, 0, 'WITHSCORES')
  if not hold[2] or tonumber(hold[2]) <= now then
    return true
  end
  local place = call('HGET', hall.w, attempts_in(hall.q, 0, 1)[1])
  return not place or tonumber(match(place, '^%d+') or 0) <= now
end

local function renew(hall, attempt)
  local expires = tonumber(call('ZSCORE', hall.x, attempt) or 0)
  if expires > now then
    local ttl, asked = match(call('HGET', hall.h, attempt) or '', '^%d+:(%d+):%d+:%-?(a?)')
    if not ttl then
      return 0
    end
    ttl = tonumber(ttl)
    call('ZADD', hall.x, now + ttl, attempt)
    keep_once(hall, ttl)
    return asked == 'a' and { ttl } or ttl
  end
  local place = expires == 0 and place_of(hall, attempt)
  if not place then
    return 0
  end
  if match(place.flags, 'p') then
    -- Its latch has opened: it is in line no more.
    place.expires = now + place.ttl
    call('HSET', hall.w, attempt, write_place(place))
    keep(hall.w, place.ttl)
  else
    -- An older request may be overtaken on another connection.
    place.stamp = tonumber(place.stamp) < tonumber(ARGV[1]) and ARGV[1] or place.stamp
    line_up(hall, attempt, place)
    if place.mode ~= 'l' and is_stuck(hall) then
      return { -place.ttl }
    end
  end
  return -place.ttl
end

for i = 1, #ARGV - 1 do
  local hall = {
    h = KEYS[4 * i - 3], x = KEYS[4 * i - 2], q = KEYS[4 * i - 1], w = KEYS[4 * i], now = now,
  }
  local done, answer = pcall(renew, hall, ARGV[i + 1])
  if not done then
    local why = answer.err or answer
    if not match(why, 'WRONGTYPE') and not match(why, 'CORRUPT') then
      error(answer, 0)
    end
  end
  -- Something else in place of a record costs that one, and no other of the batch.
  answers[i] = done and answer or 0
end
return answers
