CREATE TABLE categories (
  id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  parent_id INT UNSIGNED NULL,
  name VARCHAR(80) NOT NULL,
  slug VARCHAR(80) NOT NULL,
  UNIQUE KEY categories_slug (slug),
  CONSTRAINT categories_parent FOREIGN KEY (parent_id) REFERENCES categories (id)
);
CREATE TABLE users (
  id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  email VARCHAR(190) NOT NULL,
  name VARCHAR(120) NOT NULL,
  country CHAR(2) NOT NULL,
  is_active TINYINT(1) NOT NULL DEFAULT 1,
  credits INT NOT NULL DEFAULT 0,
  created_at DATETIME NOT NULL,
  last_login_at DATETIME NULL,
  UNIQUE KEY users_email (email),
  KEY users_name (name),
  KEY users_country (country, created_at),
  KEY users_login (last_login_at)
);
CREATE TABLE sessions (
  token CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
  user_id INT UNSIGNED NOT NULL,
  ip VARCHAR(45) NOT NULL,
  expires_at DATETIME NOT NULL,
  KEY sessions_expiry (expires_at),
  CONSTRAINT sessions_user FOREIGN KEY (user_id) REFERENCES users (id)
);
CREATE TABLE addresses (
  id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  user_id INT UNSIGNED NOT NULL,
  kind ENUM('billing', 'shipping') NOT NULL,
  street VARCHAR(120) NOT NULL,
  city VARCHAR(80) NOT NULL,
  postcode VARCHAR(12) NOT NULL,
  KEY addresses_kind (user_id, kind),
  KEY addresses_city (city),
  CONSTRAINT addresses_user FOREIGN KEY (user_id) REFERENCES users (id)
);
CREATE TABLE products (
  id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  sku VARCHAR(32) NOT NULL,
  category_id INT UNSIGNED NOT NULL,
  name VARCHAR(160) NOT NULL,
  price DECIMAL(10,2) NOT NULL,
  stock INT NOT NULL,
  is_active TINYINT(1) NOT NULL,
  attributes JSON NOT NULL,
  created_at DATETIME NOT NULL,
  UNIQUE KEY products_sku (sku),
  KEY products_name (name),
  KEY products_price (category_id, price),
  KEY products_stock (stock),
  CONSTRAINT products_category FOREIGN KEY (category_id) REFERENCES categories (id)
);
CREATE TABLE orders (
  id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  user_id INT UNSIGNED NOT NULL,
  status VARCHAR(16) NOT NULL,
  total DECIMAL(10,2) NOT NULL,
  coupon VARCHAR(16) NULL,
  created_at DATETIME NOT NULL,
  shipped_at DATETIME NULL,
  KEY orders_user (user_id, created_at DESC),
  KEY orders_status (status, created_at),
  KEY orders_created (created_at),
  KEY orders_coupon (coupon),
  CONSTRAINT orders_user FOREIGN KEY (user_id) REFERENCES users (id)
);
CREATE TABLE order_items (
  id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  order_id INT UNSIGNED NOT NULL,
  product_id INT UNSIGNED NOT NULL,
  quantity SMALLINT UNSIGNED NOT NULL,
  price DECIMAL(10,2) NOT NULL,
  KEY items_order (order_id),
  KEY items_product (product_id),
  CONSTRAINT items_order FOREIGN KEY (order_id) REFERENCES orders (id),
  CONSTRAINT items_product FOREIGN KEY (product_id) REFERENCES products (id)
);
CREATE TABLE payments (
  id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  order_id INT UNSIGNED NOT NULL,
  reference CHAR(16) NOT NULL,
  method ENUM('card', 'transfer', 'wallet', 'voucher') NOT NULL,
  amount DECIMAL(10,2) NOT NULL,
  paid_at DATETIME NOT NULL,
  UNIQUE KEY payments_order (order_id),
  UNIQUE KEY payments_reference (reference),
  KEY payments_paid (paid_at),
  CONSTRAINT payments_order FOREIGN KEY (order_id) REFERENCES orders (id)
);
CREATE TABLE reviews (
  id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  product_id INT UNSIGNED NOT NULL,
  user_id INT UNSIGNED NOT NULL,
  rating TINYINT UNSIGNED NOT NULL,
  title VARCHAR(120) NOT NULL,
  body TEXT NOT NULL,
  created_at DATETIME NOT NULL,
  KEY reviews_product (product_id, created_at DESC),
  KEY reviews_user (user_id),
  KEY reviews_rating (rating),
  FULLTEXT KEY reviews_body (body),
  CONSTRAINT reviews_product FOREIGN KEY (product_id) REFERENCES products (id),
  CONSTRAINT reviews_user FOREIGN KEY (user_id) REFERENCES users (id)
);
CREATE TABLE topics (
  id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  forum_id TINYINT UNSIGNED NOT NULL,
  user_id INT UNSIGNED NOT NULL,
  title VARCHAR(160) NOT NULL,
  is_pinned TINYINT(1) NOT NULL,
  views INT UNSIGNED NOT NULL,
  last_post_at DATETIME NOT NULL,
  KEY topics_forum (forum_id, is_pinned, last_post_at),
  FULLTEXT KEY topics_title (title),
  CONSTRAINT topics_user FOREIGN KEY (user_id) REFERENCES users (id)
);
CREATE TABLE posts (
  id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  topic_id INT UNSIGNED NOT NULL,
  user_id INT UNSIGNED NOT NULL,
  body TEXT NOT NULL,
  created_at DATETIME NOT NULL,
  KEY posts_topic (topic_id, created_at),
  KEY posts_user (user_id, created_at),
  CONSTRAINT posts_topic FOREIGN KEY (topic_id) REFERENCES topics (id),
  CONSTRAINT posts_user FOREIGN KEY (user_id) REFERENCES users (id)
);
