-- 99 % of the rows and one amount [FORCE INDEX (amount) | FORCE INDEX (kind) | USE INDEX ()]
SELECT id, note FROM skewed {hint} WHERE kind = 1 AND amount = {skewed_amount} ORDER BY id;

-- a rare kind and a wide range of amounts [FORCE INDEX (amount) | FORCE INDEX (kind) | USE INDEX ()]
SELECT id, note FROM skewed {hint} WHERE kind = {rare_kind} AND amount < 30000 ORDER BY id;

-- count of 99 % and a narrow range [FORCE INDEX (amount) | FORCE INDEX (kind) | USE INDEX ()]
SELECT COUNT(*) FROM skewed {hint} WHERE kind = 1 AND amount BETWEEN {skewed_amount} AND {skewed_amount} + 20;

-- newest of 99 % of the rows [FORCE INDEX (created) | FORCE INDEX (kind) | USE INDEX ()]
SELECT id, note FROM skewed {hint} WHERE kind = 1 ORDER BY created_at DESC LIMIT 20;

-- newest of a rare kind that stands at the old end [FORCE INDEX (created) | FORCE INDEX (kind) | USE INDEX ()]
SELECT id, note FROM skewed {hint} WHERE kind = {rare_kind} ORDER BY created_at DESC LIMIT 20;

-- oldest of a rare kind that stands at the old end [FORCE INDEX (created) | FORCE INDEX (kind) | USE INDEX ()]
SELECT id, note FROM skewed {hint} WHERE kind = {rare_kind} ORDER BY created_at LIMIT 20;

-- a city and its own region [FORCE INDEX (city) | FORCE INDEX (region) | USE INDEX ()]
SELECT COUNT(*), SUM(amount) FROM skewed {hint} WHERE city = {city_number} AND region = {its_region};

-- a city and another region [FORCE INDEX (city) | FORCE INDEX (region) | USE INDEX ()]
SELECT COUNT(*), SUM(amount) FROM skewed {hint} WHERE city = {city_number} AND region = {other_region};

-- newest of a city in its own region [FORCE INDEX (city) | FORCE INDEX (region) | FORCE INDEX (created) | USE INDEX ()]
SELECT id, note FROM skewed {hint} WHERE city = {city_number} AND region = {its_region} ORDER BY created_at DESC LIMIT 20;

-- newest of a city in another region: none [FORCE INDEX (city) | FORCE INDEX (region) | FORCE INDEX (created) | USE INDEX ()]
SELECT id, note FROM skewed {hint} WHERE city = {city_number} AND region = {other_region} ORDER BY created_at DESC LIMIT 20;

-- an empty range [FORCE INDEX (amount) | USE INDEX ()]
SELECT id, note FROM skewed {hint} WHERE amount BETWEEN {gap} AND {gap} + 1000 ORDER BY id;

-- newest of an empty range [FORCE INDEX (amount) | FORCE INDEX (created) | USE INDEX ()]
SELECT id, note FROM skewed {hint} WHERE amount BETWEEN {gap} AND {gap} + 1000 ORDER BY created_at DESC LIMIT 20;

-- newest of an empty range within 99 % [FORCE INDEX (amount) | FORCE INDEX (kind) | FORCE INDEX (created) | USE INDEX ()]
SELECT id, note FROM skewed {hint} WHERE kind = 1 AND amount BETWEEN {gap} AND {gap} + 1000 ORDER BY created_at DESC LIMIT 20;

-- newest of a wide range [FORCE INDEX (amount) | FORCE INDEX (created) | USE INDEX ()]
SELECT id, note FROM skewed {hint} WHERE amount < 35000 ORDER BY created_at DESC LIMIT 20;

-- a rare kind or one amount [FORCE INDEX (amount, kind) | USE INDEX ()]
SELECT id, note FROM skewed {hint} WHERE kind = {rare_kind} OR amount = {skewed_amount} ORDER BY id LIMIT 50;

-- 99 % or one amount, counted [FORCE INDEX (amount, kind) | USE INDEX ()]
SELECT COUNT(*), SUM(amount) FROM skewed {hint} WHERE kind = 1 OR amount = {skewed_amount};

-- a list of kinds with the frequent one [FORCE INDEX (kind) | USE INDEX ()]
SELECT kind, COUNT(*), SUM(amount) FROM skewed {hint} WHERE kind IN (1, 2, 3) GROUP BY kind ORDER BY kind;

-- most of all rows by an index [FORCE INDEX (amount) | USE INDEX ()]
SELECT SUM(city) FROM skewed {hint} WHERE amount > {skewed_amount} / 100;

-- children of a kind of parents that has the heavy one
SELECT COUNT(*), SUM(c.amount) FROM parents p JOIN children c ON c.parent_id = p.id WHERE p.kind = 1;

-- or
SELECT COUNT(*), SUM(c.amount) FROM parents p STRAIGHT_JOIN children c ON c.parent_id = p.id WHERE p.kind = 1;

-- or
SELECT COUNT(*), SUM(c.amount) FROM children c STRAIGHT_JOIN parents p ON c.parent_id = p.id WHERE p.kind = 1;

-- children of one parent with a rare state
SELECT c.id, c.amount, p.name FROM parents p JOIN children c ON c.parent_id = p.id
WHERE p.id = 1 AND c.state = {rare_state} ORDER BY c.id LIMIT 20;

-- or
SELECT c.id, c.amount, p.name FROM parents p JOIN children c FORCE INDEX (state) ON c.parent_id = p.id
WHERE p.id = 1 AND c.state = {rare_state} ORDER BY c.id LIMIT 20;

-- or
SELECT c.id, c.amount, p.name FROM parents p JOIN children c FORCE INDEX (parent) ON c.parent_id = p.id
WHERE p.id = 1 AND c.state = {rare_state} ORDER BY c.id LIMIT 20;

-- few children whose parents are of a kind
SELECT c.id, p.name FROM children c JOIN parents p ON p.id = c.parent_id
WHERE c.amount BETWEEN {skewed_amount} AND {skewed_amount} + 20 AND p.kind = {parent_kind} ORDER BY c.id;

-- or
SELECT c.id, p.name FROM children c FORCE INDEX (amount) STRAIGHT_JOIN parents p ON p.id = c.parent_id
WHERE c.amount BETWEEN {skewed_amount} AND {skewed_amount} + 20 AND p.kind = {parent_kind} ORDER BY c.id;

-- or
SELECT c.id, p.name FROM parents p FORCE INDEX (kind) STRAIGHT_JOIN children c ON p.id = c.parent_id
WHERE c.amount BETWEEN {skewed_amount} AND {skewed_amount} + 20 AND p.kind = {parent_kind} ORDER BY c.id;

-- parents that have a child of a rare state
SELECT p.id, p.name FROM parents p WHERE p.kind = {parent_kind} AND EXISTS (
  SELECT 1 FROM children c WHERE c.parent_id = p.id AND c.state = {rare_state}) ORDER BY p.id;

-- or
SELECT DISTINCT p.id, p.name FROM children c FORCE INDEX (state) STRAIGHT_JOIN parents p ON p.id = c.parent_id
WHERE p.kind = {parent_kind} AND c.state = {rare_state} ORDER BY p.id;

-- or
SELECT DISTINCT p.id, p.name FROM parents p FORCE INDEX (kind) STRAIGHT_JOIN children c FORCE INDEX (parent)
ON p.id = c.parent_id WHERE p.kind = {parent_kind} AND c.state = {rare_state} ORDER BY p.id;
