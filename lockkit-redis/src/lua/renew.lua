-- Renews holds and places in line, of several resources. Never brings one back. After hall.lua. Flags:
-- allow-oom.
--
-- KEYS  h, x, q, w of each
-- ARGV  1 stamp, then the attempt of each
-- Gives for each its lease in ms if it holds, minus its lease if it is in line, or 0 if it is gone.
local now = now_ms()
local answers, kept = {}, {}

-- Many holds of one resource need its keys kept only once.
local function keep_once(hall, ttl)
  if (kept[hall.h] or 0) < ttl then
    kept[hall.h] = ttl
    keep_holds(hall, ttl)
  end
end

for i = 1, #ARGV - 1 do
  local attempt = ARGV[i + 1]
  local hall = {
    h = KEYS[4 * i - 3], x = KEYS[4 * i - 2], q = KEYS[4 * i - 1], w = KEYS[4 * i], now = now,
  }
  local answer = 0
  local expires = tonumber(call('ZSCORE', hall.x, attempt) or 0)
  if expires > now then
    local ttl = match(call('HGET', hall.h, attempt) or '', '^%d+:(%d+):')
    if ttl then
      answer = tonumber(ttl)
      call('ZADD', hall.x, now + answer, attempt)
      keep_once(hall, answer)
    end
  elseif expires == 0 then
    local place = place_of(hall, attempt)
    if place and match(place.flags, 'p') then
      -- Its latch has opened: it is in line no more.
      place.expires = now + place.ttl
      call('HSET', hall.w, attempt, write_place(place))
      keep(hall.w, place.ttl)
      answer = -place.ttl
    elseif place then
      -- An older request may be overtaken on another connection.
      place.stamp = tonumber(place.stamp) < tonumber(ARGV[1]) and ARGV[1] or place.stamp
      line_up(hall, attempt, place)
      answer = -place.ttl
    end
  end
  answers[i] = answer
end
return answers
