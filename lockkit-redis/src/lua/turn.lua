-- Who holds, and who comes next. Put between hall.lua and a script.

-- Writes a new hold.
local function add(hall, attempt, mode, ttl, client, label, fence)
  hall.n = hall.n + 1
  if hall.is_mutex then
    local value = '1' .. attempt .. format('%d:%d:%d:-:%s:%s', fence, ttl, hall.now, client, label)
    call('SET', hall.h, value, 'PX', ttl)
    return
  end
  local record = format('%d:%d:%d:-:%s:%s:%s', fence, ttl, hall.now, mode, client, label)
  local letter = sub(mode, 1, 1)
  if letter == 'p' then
    call('HSET', hall.h, attempt, record)
    call('HINCRBY', hall.h, 'p', number_of(mode))
  elseif letter == 'o' then
    call('HSET', hall.h, attempt, record, 's' .. sub(mode, 2), attempt)
  else
    call('HSET', hall.h, attempt, record, 'm', mode, 'f', format('%d', fence))
  end
  call('ZADD', hall.x, hall.now + ttl, attempt)
  keep_holds(hall, ttl)
end

-- Takes a hold away; there are `hall.n`.
local function remove(hall, attempt, record)
  hall.n = hall.n - 1
  if hall.n <= 0 then
    call('DEL', hall.h, hall.x)
    return
  end
  call('ZREM', hall.x, attempt)
  if not record then
    return
  end
  local mode = match(record, '^%d+:%d+:%d+:[-%a]*:(%l%d*):')
  if not mode then
    corrupt()
  end
  local letter = sub(mode, 1, 1)
  if letter == 'o' then
    call('HDEL', hall.h, attempt, 's' .. sub(mode, 2))
    return
  end
  call('HDEL', hall.h, attempt)
  if letter == 'p' then
    call('HINCRBY', hall.h, 'p', -number_of(mode))
  end
end

-- Reads the clock and ends the leases that have run out.
local function settle(hall)
  hall.now = now_ms()
  hall.n = call('ZCARD', hall.x)
  if hall.n == 0 then
    return
  end
  local dead = call('ZRANGEBYSCORE', hall.x, '-inf', hall.now)
  if #dead == hall.n then
    hall.n = 0
    call('DEL', hall.h, hall.x)
    return
  end
  for _, attempt in ipairs(dead) do
    remove(hall, attempt, call('HGET', hall.h, attempt))
  end
end

local function size_of(hall)
  hall.size = hall.size or tonumber(call('GET', hall.z) or 0)
  return hall.size
end

-- The first segment from `prefer` on that is neither held nor wanted by somebody before.
local function free_segment(hall, prefer, wanted)
  local of = size_of(hall)
  if hall.n >= of then
    return nil
  end
  local from, chunk = 0, 1
  while from < of do
    local segments, fields = {}, {}
    for step = from, math.min(from + chunk, of) - 1 do
      local segment = (prefer + step) % of
      segments[#segments + 1] = segment
      fields[#fields + 1] = format('s%d', segment)
    end
    local holders = call('HMGET', hall.h, unpack(fields))
    for i, segment in ipairs(segments) do
      if not holders[i] and not wanted[segment] then
        return segment
      end
    end
    from = from + chunk
    chunk = math.min(chunk * 4, CHUNK)
  end
  return nil
end

-- How a claim would be held beside those who hold; nil if it cannot. `wanted` are the segments that
-- those before it wait for.
local function fits(hall, mode, wanted)
  local letter, number = sub(mode, 1, 1), number_of(mode)
  if letter == 'x' then
    return hall.n == 0 and mode or nil
  elseif letter == 's' then
    return (hall.n == 0 or call('HGET', hall.h, 'm') == 's') and mode or nil
  elseif letter == 'p' then
    local taken = hall.n > 0 and tonumber(call('HGET', hall.h, 'p') or 0) or 0
    return taken + number <= size_of(hall) and mode or nil
  elseif letter == 'o' then
    local is_free = number < size_of(hall) and not wanted[number]
      and call('HEXISTS', hall.h, format('s%d', number)) == 0
    return is_free and mode or nil
  elseif letter == 'a' then
    local segment = free_segment(hall, number, wanted)
    return segment and format('o%d', segment)
  end
  return nil
end

-- Gives the hold to a place in line and tells its client, unless that is `me`, who is asking. False if
-- its client is not connected.
local function hand_over(hall, attempt, place, mode, me)
  local fence = mode ~= 's' and hall.unused or token(hall, mode)
  if attempt ~= me and place.client ~= '' then
    local segment = sub(mode, 1, 1) == 'o' and sub(mode, 2) or ''
    local master = sub(call('GET', hall.server) or '', 1, 8)
    local news = 'g' .. attempt .. format('%d:%s:%s:%s', fence, segment, place.stamp, master)
    -- An error is no right to publish: then it hears of it when it asks again.
    if redis.pcall('PUBLISH', hall.inbox .. place.client, news) == 0 then
      hall.unused = mode ~= 's' and fence or hall.unused
      return false
    end
  end
  hall.unused = mode == 's' and hall.unused or nil
  call('ZREM', hall.q, attempt .. PAD)
  call('HDEL', hall.w, attempt)
  add(hall, attempt, mode, place.ttl, place.client, place.label, fence)
  return true
end

-- Lets the places end with the last of those that stand aside, once nobody is in line: who has died
-- leaves nothing for longer than its own lease.
local function tidy(hall)
  local count = call('HLEN', hall.w)
  if count == 0 or count > CHUNK or call('EXISTS', hall.q) == 1 then
    return
  end
  local last = 0
  for _, record in ipairs(call('HVALS', hall.w)) do
    last = math.max(last, read_place(record).expires)
  end
  call('PEXPIRE', hall.w, last - hall.now)
end

-- Takes attempts out of a line.
local function leave(q, attempts)
  for i, attempt in ipairs(attempts) do
    attempts[i] = attempt .. PAD
  end
  call('ZREM', q, unpack(attempts))
end

-- Lets in whoever comes next, in order: nobody passes anybody, except for a segment that those before
-- do not want. Sets `hall.is_nobody_waiting`, and `hall.blocked` to the end of the place at which it
-- stopped, unless that is `me`.
local function advance(hall, me)
  local start, chunk, wanted = 0, 1, {}
  local is_done, is_any_gone = false, hall.is_any_gone
  while not is_done do
    local line = attempts_in(hall.q, start, chunk)
    if #line == 0 then
      break
    end
    local records = call('HMGET', hall.w, unpack(line))
    local dead, aside = {}, {}
    for i, attempt in ipairs(line) do
      local place = records[i] and read_place(records[i])
      if not place or place.expires <= hall.now then
        dead[#dead + 1] = attempt
      else
        local mode = fits(hall, place.mode, wanted)
        if mode then
          is_any_gone = true
          if hand_over(hall, attempt, place, mode, me) then
            is_done = mode == 'x'
          else
            -- It gets its place in line back when it asks again.
            aside[#aside + 1] = attempt
          end
        elseif sub(place.mode, 1, 1) == 'o' and hall.n < size_of(hall) then
          wanted[number_of(place.mode)] = true
          start = start + 1
        else
          hall.blocked = attempt ~= me and place.expires or nil
          is_done = true
        end
        if is_done then
          break
        end
      end
    end
    if #dead > 0 then
      call('HDEL', hall.w, unpack(dead))
      leave(hall.q, dead)
    end
    if #aside > 0 then
      leave(hall.q, aside)
    end
    chunk = math.min(chunk * 4, CHUNK)
  end
  hall.is_nobody_waiting = not is_done and start == 0
  if is_any_gone then
    tidy(hall)
  end
end

-- The ms until the first lease ends: of a hold, or of the place that stands in the way in line.
local function first_end(hall)
  while true do
    local first = call('ZRANGE', hall.x, 0, 0, 'WITHSCORES')
    if #first == 0 then
      return hall.blocked and hall.blocked - hall.now
    end
    local left = tonumber(first[2]) - hall.now
    local record = call('HGET', hall.h, first[1])
    local ttl = record and read_hold(record).ttl or left
    if left <= ttl then
      return hall.blocked and math.min(left, hall.blocked - hall.now) or left
    end
    -- The server's clock went back.
    call('ZADD', hall.x, hall.now + ttl, first[1])
  end
end
