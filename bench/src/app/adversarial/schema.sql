CREATE TABLE skewed (
  id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  kind TINYINT UNSIGNED NOT NULL,
  region SMALLINT UNSIGNED NOT NULL,
  city SMALLINT UNSIGNED NOT NULL,
  amount INT UNSIGNED NOT NULL,
  created_at DATETIME NOT NULL,
  note VARCHAR(80) NOT NULL,
  KEY kind (kind),
  KEY region (region),
  KEY city (city),
  KEY amount (amount),
  KEY created (created_at)
);
CREATE TABLE parents (
  id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  kind TINYINT UNSIGNED NOT NULL,
  name VARCHAR(40) NOT NULL,
  KEY kind (kind)
);
CREATE TABLE children (
  id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  parent_id INT UNSIGNED NOT NULL,
  state TINYINT UNSIGNED NOT NULL,
  amount INT UNSIGNED NOT NULL,
  KEY parent (parent_id),
  KEY state (state),
  KEY amount (amount)
);
