-- Gives a mutex to a claim, and finds out whose turn it is. Put between the common case of a script
-- and the rest of it, so that the common case does not pay for it.
--
-- A fence is the next number of the bucket's counter. The counter must stay above whatever was given
-- before, also after data was lost. So the first request that each connection makes for a bucket
-- says in `run` which master this is; if another one issued the last number, the counter
-- leaps, whether or not this request needs a number, for the next ones say nothing any more: to a minute
-- ahead of the clock, so that of two masters that take over from the same data the later one leaps
-- further; where a clock is behind, over what can have been issued and lost. So does a counter that
-- is gone.
local match, format, sub = string.match, string.format, string.sub

-- A set of short members is kept as a list that is searched from its beginning, number by number.
-- With members of more than 64 bytes it is an index, so each attempt in line is padded.
local PAD = '.................................................'

local function now_us()
  local time = call('TIME')
  return time[1] * 1000000 + time[2]
end

local function vouch(run)
  if not run or call('GET', KEYS[5]) == run then
    return
  end
  local number = tonumber(call('GET', KEYS[2]) or 0) or 0
  -- Before the first number there is nothing to leap over.
  if number > 0 then
    local ahead = now_us() + 67108864
    number = ahead > number and ahead or number + 1048576
    call('SET', KEYS[2], format('%d', number))
  end
  call('SET', KEYS[5], run)
end

local function next_number(run)
  vouch(run)
  local number = call('INCR', KEYS[2])
  if number < 1e12 then
    number = now_us() + 67108864
    call('SET', KEYS[2], format('%d', number))
  end
  return number
end

local function check(value)
  if string.byte(value) ~= 49 then
    error('CORRUPT the hold is of another version', 0)
  end
end

-- The lease, client, stamp and label of a place in line; nil if it is gone or has run out. `seat` is
-- what was taken out of the line for it, if anything.
local function place_of(attempt, now, seat)
  local place = call('HGET', KEYS[4], attempt)
  if not place then
    return nil
  end
  local expires, ttl, client, stamp, label =
    match(place, '^(%d+):%d+:(%d+):%d+:%a*:%w*:(%w*):(%d+):(.*)$')
  if not expires then
    if seat then
      call('ZADD', KEYS[3], seat[2], seat[1])
    end
    error('CORRUPT a place in line is of another version', 0)
  end
  if tonumber(expires) <= now then
    return nil
  end
  return ttl, client, stamp, label
end

-- Lets the places end with the last of those that stand aside, once nobody is in line: who has died
-- leaves nothing for longer than its own lease.
local function tidy()
  if call('EXISTS', KEYS[3]) == 1 then
    return
  end
  local count = call('HLEN', KEYS[4])
  if count == 0 or count > 64 then
    return
  end
  local last = 0
  for _, place in ipairs(call('HVALS', KEYS[4])) do
    last = math.max(last, tonumber(match(place, '^%d+')))
  end
  call('PEXPIRE', KEYS[4], last - math.floor(now_us() / 1000))
end

-- Removes a few places that stand aside and have run out: nobody else would while the line never
-- ends.
local function sweep(now)
  if call('HLEN', KEYS[4]) <= 2 * call('ZCARD', KEYS[3]) + 8 then
    return
  end
  for _, attempt in ipairs(call('HRANDFIELD', KEYS[4], 24)) do
    if not place_of(attempt, now) then
      call('HDEL', KEYS[4], attempt)
      call('ZREM', KEYS[3], attempt .. PAD)
    end
  end
end

-- Hands a free mutex to whoever is first in line, alive and reachable; `me`, if it is first, is not
-- rung. `first` is who was taken out of the line before, if anybody. `news` is the name of this
-- master and the inbox prefix. Gives the attempt and the number of the new holder, or nil if
-- nobody is left in line.
local function hand_over(me, number, run, news, first)
  local now
  while true do
    first = first or call('ZPOPMIN', KEYS[3])
    if not first[1] then
      if now then
        tidy()
      end
      return nil, number
    end
    now = now or math.floor(now_us() / 1000)
    local attempt = sub(first[1], 1, 16)
    local ttl, client, stamp, label = place_of(attempt, now, first)
    first = nil
    if not ttl then
      call('HDEL', KEYS[4], attempt)
    else
      number = number or next_number(run)
      local fence, heard = format('%d', number), 1
      if attempt ~= me and client ~= '' then
        -- With the name of this master: what reaches nobody here is passed on to replicas as well,
        -- where it must not be believed.
        local grant = 'g' .. attempt .. fence .. '::' .. stamp .. ':' .. sub(news, 1, 8)
        heard = redis.pcall('PUBLISH', sub(news, 9) .. client, grant)
      end
      -- Nobody heard: it is not connected. It keeps its place for when it comes back.
      if heard ~= 0 then
        call('HDEL', KEYS[4], attempt)
        local value = '1' .. attempt .. fence .. ':' .. ttl .. ':' .. format('%d', now)
          .. ':-:' .. client .. ':' .. label
        call('SET', KEYS[1], value, 'PX', ttl)
        tidy()
        return attempt, number
      end
    end
  end
end
