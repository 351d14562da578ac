-- Gives a node a hold that the majority has and it has not, if nobody was confirmed here since.
-- Flags: allow-oom.
--
-- KEYS  1 hold, 2 state of the node
-- ARGV  1 run of the server, 2 attempt, 3 lease in ms, 4 bucket, 5 token, 6 the hold as another node has it
-- Gives 1 if the hold is here, -1 if it is not, 0 if this node has forgotten what it knew.
local call = redis.call
local node = call('HMGET', KEYS[2], 'run', 'floor', ARGV[4])
if node[1] ~= ARGV[1] then
  return 0
end
local counter = tonumber(node[3] or 0)
local token = tonumber(ARGV[5])
local held = call('GET', KEYS[1])
if held then
  local own, base = string.match(held, '^(%d+):%d+:(%d+):', 18)
  if string.sub(held, 2, 17) ~= ARGV[2] or not own then
    return -1
  elseif tonumber(own) >= token then
    return 1
  elseif tonumber(base) >= token then
    return -1
  end
elseif math.max(tonumber(node[2] or 0), counter) > token then
  return -1
end
call('SET', KEYS[1], ARGV[6], 'PX', ARGV[3])
if counter < token then
  call('HSET', KEYS[2], ARGV[4], ARGV[5])
end
return 1
