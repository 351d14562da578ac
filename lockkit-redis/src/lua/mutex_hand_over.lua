-- Gives a mutex to a claim, and finds out whose turn it is. Put between the common case of a script
-- and the rest of it, so that the common case does not pay for it.
--
-- A fence is the next number of the bucket's counter. The counter must stay above whatever was given
-- before, also after data was lost. So the first request that each connection makes for a bucket
-- says in `run` which master this is, and since when; if another one issued the last number, the counter
-- leaps, whether or not this request needs a number, for the next ones say nothing any more: to a minute
-- ahead of the clock, so that of two masters that take over from the same data the later one leaps
-- further; where a clock is behind, over what can have been issued and lost. So does a counter that
-- is gone.
local function now_us()
  local time = call('TIME')
  return time[1] * 1000000 + time[2]
end

local function vouch(run)
  if run == '' or call('GET', KEYS[5]) == run then
    return
  end
  local number = tonumber(call('GET', KEYS[4]) or 0) or 0
  -- Before the first number there is nothing to leap over.
  if number > 0 then
    local ahead = now_us() + 67108864
    number = ahead > number and ahead or number + 1048576
    call('SET', KEYS[4], string.format('%d', number))
  end
  call('SET', KEYS[5], run)
end

local function next_number(run)
  vouch(run)
  local number = call('INCR', KEYS[4])
  if number < 1e12 then
    number = now_us() + 67108864
    call('SET', KEYS[4], string.format('%d', number))
  end
  return number
end

local function check(value)
  if string.byte(value, 1) ~= 49 then
    error('CORRUPT the hold is of another version', 0)
  end
end

local function take(attempt, number, ttl, since, client, label)
  local value = '1' .. attempt .. string.format('%d:%s:%s:-:%s:%s', number, ttl, since, client, label)
  call('SET', KEYS[1], value, 'PX', ttl)
end

-- The parts of a place in line; nil if it is gone or has run out.
local function place_of(attempt, now)
  local place = call('HGET', KEYS[3], attempt)
  if not place then
    return nil
  end
  local expires, ttl, client, stamp, label =
    string.match(place, '^(%d+):%d+:(%d+):%d+:%a*:%w*:(%w*):(%d+):(.*)$')
  if not expires then
    error('CORRUPT a place in line is of another version', 0)
  end
  if tonumber(expires) <= now then
    return nil
  end
  return { ttl = ttl, client = client, stamp = stamp, label = label }
end

-- Lets the places end with the last of those that stand aside, once nobody is in line: who has died
-- leaves nothing for longer than its own lease.
local function tidy()
  local count = call('HLEN', KEYS[3])
  if count == 0 or count > 64 or call('EXISTS', KEYS[2]) == 1 then
    return
  end
  local last = 0
  for _, place in ipairs(call('HVALS', KEYS[3])) do
    last = math.max(last, tonumber(string.match(place, '^%d+')))
  end
  call('PEXPIRE', KEYS[3], last - math.floor(now_us() / 1000))
end

-- Looks at a few places when somebody new lines up, and removes those that stand aside and have run
-- out: nobody else would while the line never ends.
local function sweep(now)
  if call('HLEN', KEYS[3]) <= 2 * call('ZCARD', KEYS[2]) + 8 then
    return
  end
  for _, attempt in ipairs(call('HRANDFIELD', KEYS[3], 3)) do
    if not place_of(attempt, now) then
      call('HDEL', KEYS[3], attempt)
      call('ZREM', KEYS[2], attempt)
    end
  end
end

-- Hands a free mutex to whoever is first in line, alive and reachable; `me`, if it is first, is not
-- rung. Gives the attempt and the number of the new holder, or nil if nobody is left in line.
local function hand_over(me, number, run, inbox)
  local now
  while true do
    local line = call('ZRANGE', KEYS[2], 0, 1)
    local first = line[1]
    if not first then
      if now then
        tidy()
      end
      return nil, number
    end
    now = now or math.floor(now_us() / 1000)
    local place = place_of(first, now)
    call('ZREM', KEYS[2], first)
    if not place then
      call('HDEL', KEYS[3], first)
    else
      number = number or next_number(run)
      local heard = 1
      if first ~= me and place.client ~= '' then
        -- With the name of this master: what reaches nobody here is passed on to replicas as well,
        -- where it must not be believed.
        local master = string.sub(call('GET', KEYS[5]) or '', 1, 8)
        local news = 'g' .. first .. string.format('%d::%s:%s', number, place.stamp, master)
        heard = redis.pcall('PUBLISH', inbox .. place.client, news)
      end
      -- Nobody heard: it is not connected. It keeps its place for when it comes back.
      if heard ~= 0 then
        call('HDEL', KEYS[3], first)
        take(first, number, place.ttl, now, place.client, place.label)
        if not line[2] then
          tidy()
        end
        return first, number
      end
    end
  end
end
