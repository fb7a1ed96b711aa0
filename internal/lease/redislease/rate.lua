-- RATE: GCRA. The key holds when, in µs, all that was taken will have been refilled.
-- KEYS 1 the key
-- ARGV 1 µs in which one is refilled  2 burst  3 cost, at most the burst
-- Returns {1 taken or 0 not, what could be taken now, µs until the cost could be}

local time = redis.call('TIME')
local now = time[1] * 1e6 + time[2]
local each, cost = tonumber(ARGV[1]), tonumber(ARGV[3])
local full = now + each * tonumber(ARGV[2])

-- A clock that was set back, or a rate that has changed, must not block for ever.
local tat = math.min(math.max(tonumber(redis.call('GET', KEYS[1]) or 0), now), full)
local new = tat + each * cost
if new > full then return {0, math.floor((full - tat) / each), math.ceil(new - full)} end
redis.call('SET', KEYS[1], string.format('%.0f', new), 'PX', math.ceil((new - now) / 1000))
return {1, math.floor((full - new) / each), 0}
