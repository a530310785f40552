-- user by primary key [point | one-table]
SELECT id, email, name, country FROM users WHERE id = {user};

-- user by unique e-mail [near | one-table]
SELECT id, email, name, country FROM users WHERE email = {email};

-- product by unique sku [near | one-table]
SELECT id, sku, name, price, stock FROM products WHERE sku = {sku};

-- payment by unique reference [near | one-table]
SELECT id, order_id, method, amount, paid_at FROM payments WHERE reference = {reference};

-- session by its token [near | one-table]
SELECT user_id, ip, expires_at FROM sessions WHERE token = {token};

-- session with its user
SELECT s.expires_at, u.id, u.name, u.email FROM sessions s JOIN users u ON u.id = s.user_id WHERE s.token = {token};

-- is an e-mail taken [one-table]
SELECT EXISTS(SELECT 1 FROM users WHERE email = {email}) AS taken;

-- newest orders [near]
SELECT id, user_id, status, total, created_at FROM orders ORDER BY created_at DESC LIMIT 20;

-- oldest orders of a status [near]
SELECT id, user_id, total, created_at FROM orders WHERE status = {status} ORDER BY created_at LIMIT 20;

-- newest orders of a status [near]
SELECT id, user_id, total, created_at FROM orders WHERE status = {status} ORDER BY created_at DESC LIMIT 50;

-- newest orders of a status with their users
SELECT o.id, o.total, o.created_at, u.name, u.email FROM orders o JOIN users u ON u.id = o.user_id
WHERE o.status = {status} ORDER BY o.created_at DESC LIMIT 50;

-- newest orders with their users
SELECT o.id, o.status, o.total, u.name FROM orders o JOIN users u ON u.id = o.user_id
ORDER BY o.created_at DESC LIMIT 20;

-- a user's newest orders [near | one-table]
SELECT id, status, total, created_at FROM orders WHERE user_id = {user} ORDER BY created_at DESC LIMIT 10;

-- a user's orders of a status
SELECT id, total, created_at FROM orders WHERE user_id = {user} AND status = {status} ORDER BY created_at DESC LIMIT 10;

-- newest orders above an amount
SELECT id, user_id, total, created_at FROM orders WHERE total > {amount} ORDER BY created_at DESC LIMIT 20;

-- refunded orders with users
SELECT o.id, o.total, o.created_at, u.email FROM orders o JOIN users u ON u.id = o.user_id
WHERE o.status = 'refunded' AND o.created_at >= {day} ORDER BY o.created_at, o.id LIMIT 25;

-- next page by date [near]
SELECT id, status, total, created_at FROM orders WHERE created_at < {moment} ORDER BY created_at DESC LIMIT 20;

-- next page by date and key, as a row
SELECT id, status, total, created_at FROM orders WHERE (created_at, id) < ({moment}, {order})
ORDER BY created_at DESC, id DESC LIMIT 20;

-- next page by date and key, as an OR
SELECT id, status, total, created_at FROM orders
WHERE created_at < {moment} OR (created_at = {moment} AND id < {order})
ORDER BY created_at DESC, id DESC LIMIT 20;

-- next page by key [near]
SELECT id, status, total FROM orders WHERE id > {order} ORDER BY id LIMIT 50;

-- users in the order of their e-mails [near]
SELECT id, email, name FROM users ORDER BY email LIMIT 20;

-- next page of users by name [near]
SELECT id, email, name FROM users WHERE name > {name} ORDER BY name, id LIMIT 20;

-- a far page by key
SELECT id, status, total FROM orders ORDER BY id LIMIT 20 OFFSET {offset};

-- a far page by date
SELECT id, status, total, created_at FROM orders ORDER BY created_at DESC LIMIT 20 OFFSET {offset};

-- a page of a status
SELECT id, user_id, total, created_at FROM orders WHERE status = 'shipped' ORDER BY created_at DESC LIMIT 20 OFFSET {page};

-- first orders of a day
SELECT id, user_id, status, total FROM orders WHERE created_at >= {day} AND created_at < {next_day}
ORDER BY created_at LIMIT 10;

-- a day's orders by a date function
SELECT id, status, total FROM orders WHERE DATE(created_at) = {day} ORDER BY id;

-- largest orders of a week
SELECT id, user_id, total FROM orders WHERE created_at >= {day} AND created_at < {next_week}
ORDER BY total DESC, id LIMIT 10;

-- count of all orders
SELECT COUNT(*) FROM orders;

-- count of a status [one-table]
SELECT COUNT(*) FROM orders WHERE status = {status};

-- count of a day [one-table]
SELECT COUNT(*) FROM orders WHERE created_at >= {day} AND created_at < {next_day};

-- count of a status in a month [one-table]
SELECT COUNT(*) FROM orders WHERE status = {status} AND created_at >= {month} AND created_at < {next_month};

-- count and sum of a range of dates
SELECT COUNT(*), SUM(total) FROM orders WHERE created_at BETWEEN {month} AND {next_month};

-- count of a user's orders [one-table]
SELECT COUNT(*) FROM orders WHERE user_id = {user};

-- buyers of a month
SELECT COUNT(DISTINCT user_id) FROM orders WHERE created_at >= {month} AND created_at < {next_month};

-- first and last order [one-table]
SELECT MIN(created_at), MAX(created_at) FROM orders;

-- a user's last order [one-table]
SELECT MAX(created_at) FROM orders WHERE user_id = {user};

-- a status's first and last order [one-table]
SELECT MIN(created_at), MAX(created_at) FROM orders WHERE status = {status};

-- distinct statuses
SELECT DISTINCT status FROM orders ORDER BY status;

-- distinct coupons with a prefix
SELECT DISTINCT coupon FROM orders WHERE coupon LIKE {coupon_prefix} ORDER BY coupon LIMIT 20;

-- products that a user bought
SELECT DISTINCT p.id, p.name FROM orders o JOIN order_items i ON i.order_id = o.id JOIN products p ON p.id = i.product_id
WHERE o.user_id = {user} ORDER BY p.id LIMIT 50;

-- orders by status
SELECT status, COUNT(*), SUM(total) FROM orders GROUP BY status ORDER BY status;

-- a month's orders by status
SELECT status, COUNT(*) FROM orders WHERE created_at >= {month} AND created_at < {next_month} GROUP BY status ORDER BY status;

-- a month's sales by day
SELECT DATE(created_at) AS day, COUNT(*), SUM(total) FROM orders
WHERE created_at >= {month} AND created_at < {next_month} GROUP BY DATE(created_at) ORDER BY day;

-- sales by month
SELECT DATE_FORMAT(created_at, '%Y-%m') AS month, COUNT(*), SUM(total) FROM orders
WHERE status = 'completed' GROUP BY month ORDER BY month;

-- a day's orders by hour
SELECT HOUR(created_at) AS hour, COUNT(*) FROM orders WHERE created_at >= {day} AND created_at < {next_day}
GROUP BY hour ORDER BY hour;

-- orders by day of the week
SELECT DAYOFWEEK(created_at) AS day, COUNT(*), AVG(total) FROM orders
WHERE created_at >= {month} AND created_at < {next_month} GROUP BY day ORDER BY day;

-- users with most orders
SELECT user_id, COUNT(*) AS orders FROM orders GROUP BY user_id ORDER BY orders DESC, user_id LIMIT 10;

-- users with many orders in a month
SELECT user_id, COUNT(*) AS orders, SUM(total) FROM orders WHERE created_at >= {month} AND created_at < {next_month}
GROUP BY user_id HAVING COUNT(*) > 3 ORDER BY orders DESC, user_id LIMIT 20;

-- ten orders by key
SELECT id, status, total FROM orders WHERE id IN ({orders:10});

-- a thousand orders by key [list-rows]
SELECT id, total FROM orders WHERE id IN ({orders:1000});

-- a thousand orders by key, summed [list-sums]
SELECT COUNT(*), SUM(total) FROM orders WHERE id IN ({orders:1000});

-- a thousand orders' items, summed
SELECT COUNT(*), SUM(quantity) FROM order_items WHERE order_id IN ({orders:1000});

-- ten users' orders
SELECT id, user_id, status, total FROM orders WHERE user_id IN ({users:10}) ORDER BY id;

-- an order's items [one-table]
SELECT id, product_id, quantity, price FROM order_items WHERE order_id = {order};

-- an order with its user
SELECT o.id, o.status, o.total, u.name, u.email FROM orders o JOIN users u ON u.id = o.user_id WHERE o.id = {order};

-- an order's items with products and the order [three-tables]
SELECT o.status, i.quantity, i.price, p.sku, p.name FROM orders o
JOIN order_items i ON i.order_id = o.id JOIN products p ON p.id = i.product_id WHERE o.id = {order} ORDER BY i.id;

-- an order's user and payment [three-tables]
SELECT o.id, o.status, u.name, y.method, y.amount FROM orders o
JOIN users u ON u.id = o.user_id JOIN payments y ON y.order_id = o.id WHERE o.id = {order};

-- a user's items with products and categories
SELECT o.id, o.created_at, p.name, c.name, i.quantity FROM orders o
JOIN order_items i ON i.order_id = o.id JOIN products p ON p.id = i.product_id JOIN categories c ON c.id = p.category_id
WHERE o.user_id = {user} ORDER BY o.created_at DESC, i.id LIMIT 20;

-- a category's products by its slug
SELECT p.id, p.name, p.price FROM categories c JOIN products p ON p.category_id = c.id
WHERE c.slug = {slug} AND p.is_active = 1 ORDER BY p.price, p.id LIMIT 24;

-- a category's products within prices
SELECT id, name, price FROM products WHERE category_id = {category} AND price BETWEEN {price} AND {price} + 50
ORDER BY price, id LIMIT 24;

-- categories with their parents
SELECT c.id, c.name, p.name AS parent, COUNT(x.id) AS products FROM categories c
LEFT JOIN categories p ON p.id = c.parent_id LEFT JOIN products x ON x.category_id = c.id
GROUP BY c.id, c.name, p.name ORDER BY c.id;

-- new users with their number of orders
SELECT u.id, u.email, COUNT(o.id) AS orders FROM users u LEFT JOIN orders o ON o.user_id = u.id
WHERE u.country = {country} AND u.created_at >= {month} GROUP BY u.id, u.email ORDER BY u.id LIMIT 20;

-- a category's products with their ratings
SELECT p.id, p.name, COUNT(r.id) AS reviews, AVG(r.rating) AS rating FROM products p
LEFT JOIN reviews r ON r.product_id = p.id WHERE p.category_id = {category}
GROUP BY p.id, p.name ORDER BY p.id LIMIT 24;

-- orders without payment
SELECT o.id, o.user_id, o.total FROM orders o LEFT JOIN payments y ON y.order_id = o.id
WHERE o.status = 'pending' AND y.id IS NULL ORDER BY o.id DESC LIMIT 20;

-- a category's products sold on a day
SELECT p.id, p.name FROM products p WHERE p.category_id = {category} AND EXISTS (
  SELECT 1 FROM order_items i JOIN orders o ON o.id = i.order_id
  WHERE i.product_id = p.id AND o.created_at >= {day} AND o.created_at < {next_day}) ORDER BY p.id;

-- users who bought after their last login
SELECT u.id, u.email FROM users u WHERE u.id BETWEEN {user} AND {user} + 200 AND EXISTS (
  SELECT 1 FROM orders o WHERE o.user_id = u.id AND o.created_at > u.last_login_at) ORDER BY u.id;

-- users of a country without orders
SELECT u.id, u.email FROM users u WHERE u.country = {country} AND NOT EXISTS (
  SELECT 1 FROM orders o WHERE o.user_id = u.id) ORDER BY u.id LIMIT 20;

-- products without a bad review
SELECT id, name FROM products WHERE category_id = {category} AND id NOT IN (
  SELECT product_id FROM reviews WHERE rating = 1) ORDER BY id;

-- a day's items, summed
SELECT COUNT(*), SUM(quantity) FROM order_items
WHERE order_id IN (SELECT id FROM orders WHERE created_at >= {day} AND created_at < {next_day});

-- users who ordered on a day
SELECT id, name FROM users WHERE id IN (
  SELECT user_id FROM orders WHERE created_at >= {day} AND created_at < {next_day}) ORDER BY id LIMIT 50;

-- users with their number of orders
SELECT u.id, u.name, (SELECT COUNT(*) FROM orders o WHERE o.user_id = u.id) AS orders FROM users u
WHERE u.id BETWEEN {user} AND {user} + 20 ORDER BY u.id;

-- users with the status of their last order
SELECT u.id, u.name, (SELECT o.status FROM orders o WHERE o.user_id = u.id ORDER BY o.created_at DESC LIMIT 1) AS last
FROM users u WHERE u.id IN ({users:10}) ORDER BY u.id;

-- orders above their user's average
SELECT o.id, o.total FROM orders o WHERE o.user_id = {user}
AND o.total > (SELECT AVG(x.total) FROM orders x WHERE x.user_id = o.user_id) ORDER BY o.id;

-- users of a country with counts by a derived table
SELECT u.id, u.name, t.orders, t.total FROM users u
JOIN (SELECT user_id, COUNT(*) AS orders, SUM(total) AS total FROM orders
  WHERE created_at >= {month} AND created_at < {next_month} GROUP BY user_id) t ON t.user_id = u.id
WHERE u.country = {country} ORDER BY u.id LIMIT 50;

-- a user's orders numbered
SELECT id, total, ROW_NUMBER() OVER (ORDER BY created_at) AS number FROM orders WHERE user_id = {user} ORDER BY created_at;

-- a user's running total
SELECT id, total, SUM(total) OVER (ORDER BY created_at) AS so_far FROM orders WHERE user_id = {user} ORDER BY created_at;

-- the last order of each of ten users
SELECT id, user_id, total FROM (
  SELECT id, user_id, total, ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY created_at DESC) AS place
  FROM orders WHERE user_id IN ({users:10})) t WHERE place = 1 ORDER BY user_id;

-- users whose name begins so
SELECT id, name FROM users WHERE name LIKE {name_prefix} ORDER BY name, id LIMIT 10;

-- e-mails that begin so
SELECT id, email FROM users WHERE email LIKE {email_prefix} ORDER BY email LIMIT 10;

-- products whose name holds a word
SELECT id, name, price FROM products WHERE name LIKE {holds} ORDER BY id LIMIT 20;

-- newest reviews that hold a word
SELECT id, title, rating FROM reviews WHERE body LIKE {holds_rare} ORDER BY id DESC LIMIT 20;

-- back office search
SELECT id, name, email FROM users WHERE name LIKE {holds_name} OR email LIKE {holds_name} ORDER BY id LIMIT 20;

-- a user's activity
(SELECT 'order' AS kind, id, created_at FROM orders WHERE user_id = {user})
UNION ALL (SELECT 'review', id, created_at FROM reviews WHERE user_id = {user})
UNION ALL (SELECT 'post', id, created_at FROM posts WHERE user_id = {user})
ORDER BY created_at DESC, kind, id LIMIT 20;

-- users active on a day
SELECT user_id FROM orders WHERE created_at >= {day} AND created_at < {next_day}
UNION SELECT user_id FROM payments y JOIN orders o ON o.id = y.order_id WHERE y.paid_at >= {day} AND y.paid_at < {next_day}
ORDER BY user_id;

-- a month's best days
WITH days AS (SELECT DATE(created_at) AS day, SUM(total) AS total FROM orders
  WHERE created_at >= {month} AND created_at < {next_month} GROUP BY DATE(created_at))
SELECT day, total FROM days WHERE total > (SELECT AVG(total) FROM days) ORDER BY total DESC, day LIMIT 10;

-- top products
SELECT p.id, p.name, SUM(i.quantity) AS sold FROM order_items i JOIN products p ON p.id = i.product_id
GROUP BY p.id, p.name ORDER BY sold DESC, p.id LIMIT 10;

-- a month's top products
SELECT p.id, p.name, SUM(i.quantity) AS sold FROM orders o JOIN order_items i ON i.order_id = o.id
JOIN products p ON p.id = i.product_id WHERE o.created_at >= {month} AND o.created_at < {next_month}
GROUP BY p.id, p.name ORDER BY sold DESC, p.id LIMIT 10;

-- a product's sales by month
SELECT DATE_FORMAT(o.created_at, '%Y-%m') AS month, SUM(i.quantity) FROM order_items i JOIN orders o ON o.id = i.order_id
WHERE i.product_id = {product} GROUP BY month ORDER BY month;

-- bought together with a product
SELECT j.product_id, COUNT(*) AS times FROM order_items i JOIN order_items j ON j.order_id = i.order_id
WHERE i.product_id = {product} AND j.product_id <> i.product_id GROUP BY j.product_id ORDER BY times DESC, j.product_id LIMIT 5;

-- orders of a user or with a coupon
SELECT id, user_id, coupon, total FROM orders WHERE user_id = {user} OR coupon = {coupon} ORDER BY id;

-- a user by e-mail or name
SELECT id, name, email FROM users WHERE email = {email} OR name = {name} ORDER BY id;

-- a product's attributes
SELECT sku, attributes, JSON_UNQUOTE(JSON_EXTRACT(attributes, '$.color')) AS color FROM products WHERE id = {product};

-- a category's products of a colour
SELECT id, name, price FROM products
WHERE category_id = {category} AND JSON_UNQUOTE(JSON_EXTRACT(attributes, '$.color')) = {color} ORDER BY price, id;

-- a user's orders by kind
SELECT SUM(CASE WHEN status = 'completed' THEN 1 ELSE 0 END) AS done, SUM(CASE WHEN status = 'refunded' THEN total ELSE 0 END)
AS refunded, COUNT(*) AS orders FROM orders WHERE user_id = {user};

-- a month's orders by kind
SELECT SUM(CASE WHEN status = 'completed' THEN total ELSE 0 END) AS done, SUM(status = 'cancelled') AS cancelled,
COUNT(coupon) AS with_coupon FROM orders WHERE created_at >= {month} AND created_at < {next_month};

-- how long a month's orders took
SELECT COUNT(*), AVG(DATEDIFF(shipped_at, created_at)) AS days, MAX(TIMESTAMPDIFF(HOUR, created_at, shipped_at)) AS hours
FROM orders WHERE created_at >= {month} AND created_at < {next_month} AND shipped_at IS NOT NULL;

-- a month's payments by method
SELECT method, COUNT(*), SUM(amount) FROM payments WHERE paid_at >= {month} AND paid_at < {next_month}
GROUP BY method ORDER BY method;

-- newest reviews of a product with their users
SELECT r.id, r.rating, r.title, r.created_at, u.name FROM reviews r JOIN users u ON u.id = r.user_id
WHERE r.product_id = {product} ORDER BY r.created_at DESC, r.id LIMIT 10;

-- a product's ratings
SELECT rating, COUNT(*) FROM reviews WHERE product_id = {product} GROUP BY rating ORDER BY rating;

-- a forum's topics, pinned ones first [near]
SELECT id, title, is_pinned, views, last_post_at FROM topics WHERE forum_id = {forum}
ORDER BY is_pinned DESC, last_post_at DESC, id DESC LIMIT 25;

-- a topic's posts with their users
SELECT p.id, p.body, p.created_at, u.name FROM posts p JOIN users u ON u.id = p.user_id
WHERE p.topic_id = {topic} ORDER BY p.created_at, p.id LIMIT 20;

-- a forum's topics with their number of posts
SELECT t.id, t.title, COUNT(*) AS posts, MAX(p.created_at) AS newest FROM topics t JOIN posts p ON p.topic_id = t.id
WHERE t.forum_id = {forum} AND t.is_pinned = 1 GROUP BY t.id, t.title ORDER BY newest DESC, t.id LIMIT 25;

-- products nearly sold out
SELECT id, sku, name, stock FROM products WHERE stock < 5 AND is_active = 1 ORDER BY stock, id LIMIT 20;

-- users by country
SELECT country, COUNT(*), MAX(created_at) FROM users GROUP BY country ORDER BY country;

-- a country's newest users [near]
SELECT id, name, created_at FROM users WHERE country = {country} ORDER BY created_at DESC LIMIT 20;

-- what a connection pool asks
SELECT 1;

-- what a driver asks
SELECT @@session.auto_increment_increment, @@autocommit;

-- a topic's posts, a user's own marked
SELECT p.id, p.created_at, IF(p.user_id = {user}, 1, 0) AS is_own FROM posts p
WHERE p.topic_id = {topic} ORDER BY p.created_at, p.id LIMIT 20;

-- a category's products above a price with tax
SELECT id, name, price FROM products WHERE category_id = {category} AND price * 1.2 > {price} ORDER BY id LIMIT 20;

-- products of a user with a minimum of pieces
SELECT i.product_id, SUM(i.quantity) AS pieces FROM orders o JOIN order_items i ON i.order_id = o.id
WHERE o.user_id = {user} GROUP BY i.product_id HAVING SUM(i.quantity) * 100 >= {price} ORDER BY i.product_id;

-- a user's e-mail in any case
SELECT id, name FROM users WHERE id = {user} AND LOWER(email) = {email};

-- users not seen since
SELECT COUNT(*) FROM users WHERE last_login_at < {day} OR last_login_at IS NULL;

-- sessions of a user that hold
SELECT token, ip FROM sessions WHERE user_id = {user} AND expires_at > {day} ORDER BY token;

-- users in a city with their shipping addresses
SELECT u.id, u.name, a.street, a.postcode FROM addresses a JOIN users u ON u.id = a.user_id
WHERE a.city = {city} AND a.kind = 'shipping' ORDER BY u.id, a.id LIMIT 20;

-- newest reviews that match a word
SELECT id, title, rating FROM reviews WHERE MATCH(body) AGAINST ({rare} IN BOOLEAN MODE) ORDER BY id DESC LIMIT 20;

-- reviews that match two words, by rating
SELECT rating, COUNT(*) FROM reviews WHERE MATCH(body) AGAINST ({word_and_rare} IN BOOLEAN MODE)
GROUP BY rating ORDER BY rating;

-- a user's reviews that match a word
SELECT id, title, rating FROM reviews WHERE user_id = {user} AND MATCH(body) AGAINST ({word} IN BOOLEAN MODE) ORDER BY id;

-- a forum's topics whose title matches
SELECT id, title, last_post_at FROM topics WHERE forum_id = {forum} AND MATCH(title) AGAINST ({word} IN BOOLEAN MODE)
ORDER BY last_post_at DESC, id DESC LIMIT 25;

-- newest open orders, of a view
SELECT id, total, created_at, name, email FROM open_orders ORDER BY created_at DESC LIMIT 20;

-- a user's open orders, of a view
SELECT id, status, total, created_at, email FROM open_orders WHERE user_id = {user} ORDER BY id;

-- an open order by its key, of a view
SELECT id, status, total, name FROM open_orders WHERE id = {order};

-- a category's ratings, of a view
SELECT id, name, reviews, rating FROM product_ratings WHERE category_id = {category} ORDER BY id LIMIT 24;

-- a user's orders of a status by a forced index
SELECT id, total, created_at FROM orders FORCE INDEX (orders_user) WHERE user_id = {user} AND status = {status}
ORDER BY created_at DESC LIMIT 10;

-- a month's orders of a status by a forced index
SELECT COUNT(*), SUM(total) FROM orders FORCE INDEX (orders_status)
WHERE status = {status} AND created_at >= {month} AND created_at < {next_month};
