CREATE VIEW open_orders AS
SELECT o.id, o.user_id, o.status, o.total, o.created_at, u.name, u.email
FROM orders o JOIN users u ON u.id = o.user_id WHERE o.status IN ('pending', 'paid');
CREATE VIEW product_ratings AS
SELECT p.id, p.category_id, p.name, COUNT(r.id) AS reviews, AVG(r.rating) AS rating
FROM products p LEFT JOIN reviews r ON r.product_id = p.id GROUP BY p.id, p.category_id, p.name;
