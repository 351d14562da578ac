-- What the scripts of the kinds that are not a mutex have in common. Put in front of each of them.
--
-- A hall is the state of one resource: who holds it and who stands in line.
--   h  attempt -> fence:ttl:since:flags:mode:client:label   each hold. Besides, in fields that are no
--      attempts: `m` how a read-write lock is held, `p` the permits taken, `s<i>` who has segment i
--   x  attempt -> when its lease ends                        each hold; the truth about leases
--   q  attempt -> its number                                 the line
--   w  attempt -> expires:number:ttl:since:flags:mode:client:label   each place in line, also of one
--      that could not be reached and stands aside until it asks again
--   z  the permits or segments that there are
-- Of a mutex, h is the string that is the hold, and there is neither x nor z.
--
-- Times are the server's, in ms. Modes: `x` exclusive, `s` shared, `p<count>` permits, `a<prefer>` any
-- segment, `o<i>` that one, `l` to pass a latch. Flags of a hold: `d` detached, `a` asked to release,
-- or `-`; of a place: `f` fair or `b` barging, and `p` if its latch has opened.
local call, match, format, sub = redis.call, string.match, string.format, string.sub

local HOLD = '^(%d+):(%d+):(%d+):([-%a]*):(%l%d*):(%w*):(.*)$'
local PLACE = '^(%d+):(%d+):(%d+):(%d+):(%a*):(%l%d*):(%w*):(.*)$'

-- How many places are read or changed at once.
local CHUNK = 64

local function corrupt()
  error({ err = 'CORRUPT what is stored is of another version' })
end

local function now_us()
  local time = call('TIME')
  return time[1] * 1000000 + time[2]
end

local function now_ms()
  return math.floor(now_us() / 1000)
end

local function read_hold(record)
  local fence, ttl, since, flags, mode, client, label = match(record, HOLD)
  if not fence then
    corrupt()
  end
  return {
    fence = tonumber(fence), ttl = tonumber(ttl), since = since, flags = flags, mode = mode,
    client = client, label = label,
  }
end

local function write_hold(hold)
  return format('%d:%d:%s:%s:%s:%s:%s',
    hold.fence, hold.ttl, hold.since, hold.flags, hold.mode, hold.client, hold.label)
end

local function read_place(record)
  local expires, seq, ttl, since, flags, mode, client, label = match(record, PLACE)
  if not expires then
    corrupt()
  end
  return {
    expires = tonumber(expires), seq = seq, ttl = tonumber(ttl), since = since, flags = flags,
    mode = mode, client = client, label = label,
  }
end

local function write_place(place)
  return format('%d:%s:%d:%s:%s:%s:%s:%s', place.expires, place.seq, place.ttl, place.since,
    place.flags, place.mode, place.client, place.label)
end

-- The keys of a hall, from KEYS[first] on: h, x, q, w, z, the fence counter and the server of its
-- bucket. `run` is the process that the server is, once for each connection and bucket, else ''.
local function open(first, run, inbox)
  return {
    h = KEYS[first], x = KEYS[first + 1], q = KEYS[first + 2], w = KEYS[first + 3],
    z = KEYS[first + 4], fence = KEYS[first + 5], server = KEYS[first + 6],
    run = run, inbox = inbox,
  }
end

-- The next number of the bucket, above whatever was given before, also after data was lost: if another
-- process issued the last one, the counter takes a leap past the clock; if it is gone, a larger one.
local function next_number(hall)
  local number = call('INCR', hall.fence)
  if number >= 1e12 and hall.run == '' then
    return number
  end
  if number < 1e12 then
    number = now_us() + 67108864
  elseif call('GET', hall.server) ~= hall.run then
    number = math.max(number, now_us()) + 1048576
  else
    return number
  end
  call('SET', hall.fence, format('%d', number))
  if hall.run ~= '' then
    call('SET', hall.server, hall.run)
  end
  return number
end

-- A reader's token: at least the last writer's, below every later one.
local function token(hall, mode)
  if mode == 's' then
    return tonumber(call('GET', hall.fence) or 0)
  end
  return next_number(hall)
end

-- Lets a key live at least as long as a lease that it has to do with: what a killed process leaves is
-- gone a lease later.
local function keep(key, ttl)
  if call('PTTL', key) < ttl then
    call('PEXPIRE', key, ttl + 1000)
  end
end

-- h and x end together.
local function keep_holds(hall, ttl)
  if call('PTTL', hall.h) < ttl then
    call('PEXPIRE', hall.h, ttl + 1000)
    call('PEXPIRE', hall.x, ttl + 1000)
  end
end

local function number_of(mode)
  return tonumber(sub(mode, 2))
end

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
    call('HSET', hall.h, attempt, record, 'm', mode)
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

-- The live place of an attempt, in line or aside; nil if there is none.
local function place_of(hall, attempt)
  local record = call('HGET', hall.w, attempt)
  if not record then
    return nil
  end
  local place = read_place(record)
  if place.expires <= hall.now then
    call('HDEL', hall.w, attempt)
    call('ZREM', hall.q, attempt)
    return nil
  end
  return place
end

-- Writes a place, new or renewed, and puts it where it belongs in line.
local function line_up(hall, attempt, place)
  place.expires = hall.now + place.ttl
  call('HSET', hall.w, attempt, write_place(place))
  call('ZADD', hall.q, place.seq, attempt)
  keep(hall.q, place.ttl)
  keep(hall.w, place.ttl)
end

-- Looks at a few places when somebody new lines up, and removes those that stand aside and have run
-- out: nobody else would while the line never ends.
local function sweep(hall)
  if call('HLEN', hall.w) <= 2 * call('ZCARD', hall.q) + 8 then
    return
  end
  for _, attempt in ipairs(call('HRANDFIELD', hall.w, 3)) do
    place_of(hall, attempt)
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
  for from = 0, of - 1, CHUNK do
    local segments, fields = {}, {}
    for step = from, math.min(from + CHUNK, of) - 1 do
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

-- Gives the hold to a place in line and tells its client, unless that is `me`, who is asking.
local function hand_over(hall, attempt, place, mode, me)
  local fence = token(hall, mode)
  if attempt ~= me and place.client ~= '' then
    local segment = sub(mode, 1, 1) == 'o' and sub(mode, 2) or ''
    local news = 'g' .. attempt .. format('%d:%s', fence, segment)
    -- An error is no right to publish: then it hears of it when it asks again.
    if redis.pcall('PUBLISH', hall.inbox .. place.client, news) == 0 then
      -- Not connected. It stands aside, and gets its place in line back when it asks again.
      call('ZREM', hall.q, attempt)
      return
    end
  end
  call('ZREM', hall.q, attempt)
  call('HDEL', hall.w, attempt)
  add(hall, attempt, mode, place.ttl, place.client, place.label, fence)
end

-- Lets in whoever comes next, in order: nobody passes anybody, except for a segment that those before
-- do not want. Sets `hall.blocked` to the end of the place at which it stopped, unless that is `me`.
local function advance(hall, me)
  local start, chunk, wanted = 0, 1, {}
  while true do
    local line = call('ZRANGE', hall.q, start, start + chunk - 1)
    if #line == 0 then
      return
    end
    local records = call('HMGET', hall.w, unpack(line))
    local dead = {}
    local is_done = false
    for i, attempt in ipairs(line) do
      local place = records[i] and read_place(records[i])
      if not place or place.expires <= hall.now then
        dead[#dead + 1] = attempt
      else
        local mode = fits(hall, place.mode, wanted)
        if mode then
          hand_over(hall, attempt, place, mode, me)
          is_done = mode == 'x' and hall.n > 0
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
      call('ZREM', hall.q, unpack(dead))
      call('HDEL', hall.w, unpack(dead))
    end
    if is_done then
      return
    end
    chunk = math.min(chunk * 4, CHUNK)
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
