-- The records of the kinds that are not a mutex. Put in front of their scripts.
--
-- A hall is the state of one resource: who holds it and who stands in line.
--   h  attempt -> fence:ttl:since:flags:mode:client:label   each hold. Besides, in fields that are no
--      attempts: `m` how a read-write lock is held and `f` the fence of its readers, `p` the permits
--      taken, `s<i>` who has segment i
--   x  attempt -> when its lease ends                        each hold; the truth about leases
--   q  attempt, padded -> its number                         the line, in the order of arrival
--   w  attempt -> expires:number:ttl:since:flags:mode:client:stamp:label   each place in line, also of
--      one that could not be reached and stands aside until it asks again. The stamp is the time, on the
--      client's own clock, at which the last request left that found it waiting: a grant gives it
--      back, and the client counts the lease from there
--   z  the permits or segments that there are
-- Of a mutex, h is the string that is the hold, and there is neither x nor z.
--
-- Times are the server's, in ms. Modes: `x` exclusive, `s` shared, `p<count>` permits, `a<prefer>` any
-- segment, `o<i>` that one, `l` to pass a latch. Flags of a hold: `d` detached, `a` asked to release,
-- or `-`; of a place: `f` fair or `b` barging, and `p` if its latch has opened.
local call, match, format, sub = redis.call, string.match, string.format, string.sub

local HOLD = '^(%d+):(%d+):(%d+):([-%a]*):(%l%d*):(%w*):(.*)$'
local PLACE = '^(%d+):(%d+):(%d+):(%d+):(%a*):(%l%d*):(%w*):(%d+):(.*)$'

-- A set of short members is kept as a list that is searched from its beginning, number by number.
-- With members of more than 64 bytes it is an index, so each attempt in line is padded.
local PAD = '.................................................'

-- How many places are read or changed at once.
local CHUNK = 64

-- Text, because servers before 7.0 cannot pass on a table.
local function corrupt()
  error('CORRUPT what is stored is of another version', 0)
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
  local expires, seq, ttl, since, flags, mode, client, stamp, label = match(record, PLACE)
  if not expires then
    corrupt()
  end
  return {
    expires = tonumber(expires), seq = seq, ttl = tonumber(ttl), since = since, flags = flags,
    mode = mode, client = client, stamp = stamp, label = label,
  }
end

local function write_place(place)
  return format('%d:%s:%d:%s:%s:%s:%s:%s:%s', place.expires, place.seq, place.ttl, place.since,
    place.flags, place.mode, place.client, place.stamp, place.label)
end

-- The first request of each connection for a bucket says in `run` which master this is. If another one
-- issued the last number, the counter leaps; see mutex_hand_over.lua.
local function vouch(hall)
  if hall.run == '' or call('GET', hall.server) == hall.run then
    return
  end
  local number = tonumber(call('GET', hall.fence) or 0) or 0
  -- Before the first number there is nothing to leap over.
  if number > 0 then
    local ahead = now_us() + 67108864
    number = ahead > number and ahead or number + 1048576
    call('SET', hall.fence, format('%d', number))
  end
  call('SET', hall.server, hall.run)
end

-- The next number of the bucket. A counter that is gone is set ahead of the clock.
local function next_number(hall)
  local number = call('INCR', hall.fence)
  if number < 1e12 then
    number = now_us() + 67108864
    call('SET', hall.fence, format('%d', number))
  end
  return number
end

-- The keys of a hall, from KEYS[first] on: h, x, q, w, z, the fence counter and the server of its
-- bucket. `run` is the master that this is, once for each connection and bucket, else ''.
local function open(first, run, inbox)
  local hall = {
    h = KEYS[first], x = KEYS[first + 1], q = KEYS[first + 2], w = KEYS[first + 3],
    z = KEYS[first + 4], fence = KEYS[first + 5], server = KEYS[first + 6],
    run = run, inbox = inbox,
  }
  vouch(hall)
  return hall
end

-- The fence of a new hold. A reader's is at least the last writer's, below every later one, and the
-- same for all who read together.
local function token(hall, mode)
  if mode == 's' then
    return tonumber(hall.n > 0 and call('HGET', hall.h, 'f') or call('GET', hall.fence) or 0)
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
  if hall.n == 1 or call('PTTL', hall.h) < ttl then
    call('PEXPIRE', hall.h, ttl + 1000)
    call('PEXPIRE', hall.x, ttl + 1000)
  end
end

local function number_of(mode)
  return tonumber(sub(mode, 2))
end

-- The attempts at so many places of a line, from `start` on.
local function attempts_in(q, start, count)
  local line = call('ZRANGE', q, start, start + count - 1)
  for i, member in ipairs(line) do
    line[i] = sub(member, 1, 16)
  end
  return line
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
    call('ZREM', hall.q, attempt .. PAD)
    return nil
  end
  return place
end

-- Writes a place, new or renewed, and puts it where it belongs in line.
local function line_up(hall, attempt, place)
  place.expires = hall.now + place.ttl
  call('HSET', hall.w, attempt, write_place(place))
  call('ZADD', hall.q, place.seq, attempt .. PAD)
  keep(hall.q, place.ttl)
  keep(hall.w, place.ttl)
end

-- The number of a new place: after everybody in line and, unless the clock went back, after those who
-- stand aside.
local function number_behind(hall)
  local last = call('ZRANGE', hall.q, -1, -1, 'WITHSCORES')
  return format('%d', math.max((last[2] or 0) + 1, now_us()))
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

