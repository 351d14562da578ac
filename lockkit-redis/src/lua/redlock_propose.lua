-- Phase 1 on one node: takes the hold if it is free, and tells the node's counter.
--
-- KEYS  1 hold, 2 state of the node
-- ARGV  1 run of the server, 2 attempt, 3 lease in ms, 4 round, 5 bucket,
--       6 `since:flags:client:label`
-- Gives {0} if this node has forgotten what it knew; {1, counter, token} if the hold is ours, with
-- the token that it was confirmed with or 0; {2, counter, left} if it is somebody else's for so
-- many ms.
local call = redis.call
local node = call('HMGET', KEYS[2], 'run', 'floor', ARGV[5])
if node[1] ~= ARGV[1] then
  return { 0 }
end
local counter = math.max(tonumber(node[2] or 0), tonumber(node[3] or 0))
local token, base, tail = 0, counter, ARGV[6]
local held = call('GET', KEYS[1])
if held then
  local lease, round
  token, round, base, lease, tail = string.match(held, '^(%d+):(%d+):(%d+):(%d+):(.*)$', 18)
  if string.sub(held, 1, 1) ~= '1' or not token then
    return redis.error_reply('CORRUPT the hold is of another version')
  end
  local theirs = string.sub(held, 2, 17) ~= ARGV[2]
  if theirs or tonumber(round) > tonumber(ARGV[4]) then
    local left = call('PTTL', KEYS[1])
    if left > tonumber(lease) then
      -- The server's clock went back.
      call('PEXPIRE', KEYS[1], lease)
      left = tonumber(lease)
    end
    return { 2, counter, math.max(left, 1) }
  end
  token, base = tonumber(token), tonumber(base)
end
local value = string.format('%d:%s:%d:%s:', token, ARGV[4], base, ARGV[3])
call('SET', KEYS[1], '1' .. ARGV[2] .. value .. tail, 'PX', ARGV[3])
return { 1, base, token }
