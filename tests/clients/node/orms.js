// Knex and Sequelize: definitions and migrations, rows, joins, transactions, what they read of a table.
// Steps run one after another; each that fails is printed, and `ok` at the end if none did.
'use strict';

const assert = require('node:assert');
const knexOf = require('knex');
const { DataTypes, Op, Sequelize, Transaction } = require('sequelize');

const port = Number(process.argv[2]);
const server = { host: '127.0.0.1', port, user: 'root' };
const failed = [];

async function step(name, run) {
  try {
    await run();
  } catch (error) {
    failed.push(name);
    console.error(`${name}: ${error.sql ?? ''}\n  ${error.stack}`);
  }
}

async function knexDefinitions(knex) {
  await step('knex: tables of every type', async () => {
    await knex.schema.createTable('users', (table) => {
      table.increments('id');
      table.string('name', 100).notNullable().defaultTo('nobody').comment('who');
      table.string('email').unique();
      table.enu('role', ['admin', 'user']).defaultTo('user');
      table.boolean('active').defaultTo(true);
      table.json('extra');
      table.decimal('score', 8, 2);
      table.float('ratio');
      table.double('precise');
      table.bigInteger('big').unsigned();
      table.binary('raw');
      table.uuid('tag');
      table.text('body', 'longtext');
      table.date('born');
      table.time('wakes');
      table.datetime('seen', { precision: 3 });
      table.timestamps(true, true);
      table.index(['role', 'active'], 'by_role');
    });
    await knex.schema.createTable('posts', (table) => {
      table.bigIncrements('id');
      table.integer('user_id').unsigned().references('id').inTable('users').onDelete('CASCADE');
      table.string('title');
      table.text('body');
    });
  });
  await step('knex: what there is', async () => {
    assert.strictEqual(await knex.schema.hasTable('users'), true);
    assert.strictEqual(await knex.schema.hasTable('nothing'), false);
    assert.strictEqual(await knex.schema.hasColumn('users', 'role'), true);
    const info = await knex('users').columnInfo();
    assert.strictEqual(info.name.type, 'varchar');
    assert.strictEqual(info.name.maxLength, 100);
    assert.strictEqual(info.name.nullable, false);
    assert.strictEqual(info.name.defaultValue, 'nobody');
  });
  await step('knex: columns come, change and go', async () => {
    await knex.schema.alterTable('users', (table) => {
      table.string('nick', 20).after('name');
      table.integer('age').unsigned().defaultTo(3);
    });
    await knex.schema.alterTable('users', (table) => table.string('nick', 50).notNullable().alter());
    await knex.schema.alterTable('users', (table) => table.renameColumn('nick', 'handle'));
    assert.strictEqual((await knex('users').columnInfo('handle')).maxLength, 50);
    await knex.schema.alterTable('users', (table) => table.setNullable('handle'));
    await knex.schema.alterTable('users', (table) => table.dropNullable('handle'));
    await knex.schema.alterTable('users', (table) => table.dropColumns('handle', 'age'));
  });
  await step('knex: keys come and go', async () => {
    await knex.schema.alterTable('posts', (table) => {
      table.index('title');
      table.unique(['user_id', 'title']);
    });
    await knex.schema.alterTable('posts', (table) => {
      table.dropForeign('user_id');
      table.dropUnique(['user_id', 'title']);
      table.dropIndex('title');
    });
    await knex.schema.alterTable('posts', (table) => {
      table.foreign('user_id').references('users.id').onUpdate('CASCADE');
    });
    await assert.rejects(
      knex.schema.alterTable('posts', (table) => table.dropIndex([], 'posts_user_id_foreign')),
      { errno: 1553 },
    );
  });
  await step('knex: tables are renamed and copied', async () => {
    await knex.schema.renameTable('posts', 'articles');
    await knex.schema.renameTable('articles', 'posts');
    await knex.schema.createTableLike('posts2', 'posts');
    await knex.schema.dropTableIfExists('posts2');
    await knex.schema.dropTableIfExists('posts2');
  });
  await step('knex: migrations', async () => {
    const one = {
      up: (schema) => schema.schema.createTable('later', (table) => table.increments()),
      down: (schema) => schema.schema.dropTable('later'),
    };
    const migrationSource = {
      getMigrations: async () => ['one'],
      getMigrationName: (name) => name,
      getMigration: async () => one,
    };
    const [batch, names] = await knex.migrate.latest({ migrationSource });
    assert.deepStrictEqual([batch, names], [1, ['one']]);
    assert.strictEqual(await knex.migrate.currentVersion({ migrationSource }), 'one');
    await knex.migrate.rollback({ migrationSource });
    assert.strictEqual(await knex.schema.hasTable('later'), false);
  });
}

async function knexRows(knex) {
  await step('knex: rows come', async () => {
    const [first] = await knex('users').insert({
      name: 'anna', email: 'a@x', extra: JSON.stringify({ a: [1, 2] }), score: 1.5, big: '18446744073709551615',
      raw: Buffer.from([0, 255]), born: '2000-02-29', wakes: '07:30:00', seen: '2024-01-02 03:04:05.678',
    });
    assert.strictEqual(first, 1);
    await knex('users').insert([{ name: 'bob', email: 'b@x' }, { name: 'cleo', email: 'c@x', role: 'admin' }]);
    await knex.batchInsert('posts', Array.from({ length: 50 }, (_, n) => ({ user_id: (n % 3) + 1, title: `t${n}` })), 20);
    await knex('users').insert({ name: 'again', email: 'a@x' }).onConflict('email').ignore();
    await knex('users').insert({ name: 'Anna', email: 'a@x' }).onConflict('email').merge();
    assert.strictEqual((await knex('users').where({ email: 'a@x' }).first()).name, 'Anna');
    await assert.rejects(knex('users').insert({ name: 'x', email: 'b@x' }), { code: 'ER_DUP_ENTRY' });
  });
  await step('knex: rows are read', async () => {
    const row = await knex('users').where('name', 'Anna').first();
    assert.deepStrictEqual(row.extra, { a: [1, 2] });
    assert.deepStrictEqual(row.raw, Buffer.from([0, 255]));
    assert.strictEqual(row.seen.getMilliseconds(), 678);
    const found = await knex('users').whereIn('id', [1, 2]).whereNot('name', 'x').whereBetween('id', [1, 9])
      .whereILike('name', '%n%').orWhereNull('name').orderBy('id').pluck('name');
    assert.deepStrictEqual(found, ['Anna']);
    const json = await knex('users').whereJsonPath('extra', '$.a[0]', '=', 1).select('id');
    assert.strictEqual(json.length, 1);
    assert.strictEqual((await knex('users').jsonExtract('extra', '$.a[1]', 'second').where('id', 1))[0].second, '2');
  });
  await step('knex: joins, groups, subqueries', async () => {
    const counted = await knex('posts as p').join('users as u', 'u.id', 'p.user_id').groupBy('u.name')
      .count('* as n').select('u.name').having('n', '>', 16).orderBy('n', 'desc').orderBy('u.name');
    assert.deepStrictEqual(counted.map((row) => [row.name, row.n]), [['Anna', 17], ['bob', 17]]);
    const without = await knex('users').whereNotExists(
      knex('posts').whereRaw('posts.user_id = users.id').andWhere('title', 't0')).count({ n: '*' });
    assert.strictEqual(without[0].n, 2);
    const both = await knex('users').select('name').union([knex('posts').select('title').limit(2)], true);
    assert.strictEqual(both.length, 5);
    const ranked = await knex.with('numbered', knex('posts').select('user_id').rowNumber('place', 'id', 'user_id'))
      .from('numbered').where('place', 1).select('user_id').orderBy('user_id');
    assert.deepStrictEqual(ranked.map((row) => row.user_id), [1, 2, 3]);
    const left = await knex('users as u').leftJoin('posts as p', function on() {
      this.on('p.user_id', 'u.id').andOnVal('p.title', 't4');
    }).select('u.id', 'p.title').orderBy('u.id');
    assert.deepStrictEqual(left.map((row) => row.title), [null, 't4', null]);
  });
  await step('knex: rows change and go', async () => {
    assert.strictEqual(await knex('posts').where('id', '<', 4).update({ body: knex.raw('UPPER(title)') }), 3);
    assert.strictEqual(await knex('users').where({ id: 1 }).increment('score', 2), 1);
    assert.strictEqual((await knex('users').where({ id: 1 }).first()).score, '3.50');
    assert.strictEqual(await knex('posts').where('id', '>', 40).orderBy('id').limit(5).del(), 5);
  });
  await step('knex: transactions', async () => {
    await assert.rejects(knex.transaction(async (within) => {
      await within('posts').del();
      throw new Error('undone');
    }), /undone/);
    assert.strictEqual((await knex('posts').count({ n: '*' }))[0].n, 45);
    await knex.transaction(async (within) => {
      await within('posts').where('id', 1).del();
      await within.transaction(async (inner) => {
        await inner('posts').where('id', 2).del();
        throw new Error('inner');
      }).catch(() => {});
      await within('posts').where('id', 3).forUpdate().first();
    }, { isolationLevel: 'repeatable read' });
    assert.deepStrictEqual(await knex('posts').where('id', '<', 4).pluck('id'), [2, 3]);
  });
  await step('knex: streams and raw statements', async () => {
    let rows = 0;
    for await (const row of knex('posts').select('id').stream()) rows += row.id > 0;
    assert.strictEqual(rows, 44);
    const [raw] = await knex.raw('SELECT ? AS a, ?? AS b FROM users LIMIT 1', [1, 'name']);
    assert.deepStrictEqual({ ...raw[0] }, { a: 1, b: 'Anna' });
    await knex('posts').truncate();
    const [id] = await knex('posts').insert({ title: 'first' });
    assert.strictEqual(id, 1);
  });
}

function models(sequelize) {
  const User = sequelize.define('User', {
    name: { type: DataTypes.STRING(40), allowNull: false, unique: true },
    role: { type: DataTypes.ENUM('admin', 'user'), defaultValue: 'user' },
    extra: DataTypes.JSON,
    score: DataTypes.DECIMAL(8, 2),
    big: DataTypes.BIGINT.UNSIGNED,
    raw: DataTypes.BLOB,
    tag: { type: DataTypes.UUID, defaultValue: DataTypes.UUIDV4 },
    born: DataTypes.DATEONLY,
    seen: DataTypes.DATE(3),
    active: { type: DataTypes.BOOLEAN, defaultValue: true },
  }, { indexes: [{ fields: ['role', 'active'] }] });
  const Post = sequelize.define('Post', { title: DataTypes.STRING, body: DataTypes.TEXT }, { paranoid: true });
  const Tag = sequelize.define('Tag', { word: { type: DataTypes.STRING, unique: true } }, { timestamps: false });
  User.hasMany(Post, { as: 'posts', foreignKey: 'userId', onDelete: 'CASCADE' });
  Post.belongsTo(User, { as: 'user', foreignKey: 'userId' });
  Post.belongsToMany(Tag, { through: 'PostTags' });
  Tag.belongsToMany(Post, { through: 'PostTags' });
  return { User, Post, Tag };
}

async function sequelizeRows(sequelize, { User, Post, Tag }) {
  await step('sequelize: it connects and makes its tables', async () => {
    await sequelize.authenticate();
    await sequelize.sync({ force: true });
    await sequelize.sync({ alter: true });
    await sequelize.sync({ alter: true });
    await sequelize.sync({ force: true });
  });
  await step('sequelize: rows come', async () => {
    const anna = await User.create({
      name: 'anna', extra: { a: { b: 1 } }, score: '2.50', big: '18446744073709551615', raw: Buffer.from([0, 1]),
      born: '2000-02-29', seen: new Date(1700000000123),
    });
    assert.strictEqual(anna.id, 1);
    const read = await User.findByPk(1);
    assert.deepStrictEqual(read.extra, { a: { b: 1 } });
    assert.strictEqual(read.seen.getTime(), 1700000000123);
    assert.strictEqual(read.born, '2000-02-29');
    assert.strictEqual(read.active, true);
    await User.bulkCreate([{ name: 'bob' }, { name: 'cleo' }]);
    await User.bulkCreate([{ name: 'bob', score: 9 }], { updateOnDuplicate: ['score'] });
    assert.strictEqual((await User.findOne({ where: { name: 'bob' } })).score, '9.00');
    await User.upsert({ name: 'bob', score: 10 });
    const [, made] = await User.findOrCreate({ where: { name: 'dora' }, defaults: { score: 1 } });
    assert.strictEqual(made, true);
    await assert.rejects(User.create({ name: 'bob' }), { name: 'SequelizeUniqueConstraintError' });
    await assert.rejects(User.create({ name: null }), { name: 'SequelizeValidationError' });
  });
  await step('sequelize: rows of several tables', async () => {
    for (let n = 0; n < 12; n += 1) {
      const post = await Post.create({ title: `t${n}`, userId: (n % 3) + 1 });
      const [tag] = await Tag.findOrCreate({ where: { word: `w${n % 2}` } });
      await post.addTag(tag);
    }
    const page = await User.findAndCountAll({
      include: [{ model: Post, as: 'posts', include: [Tag], required: true }], limit: 2, offset: 1, distinct: true,
      order: [['id', 'ASC'], [{ model: Post, as: 'posts' }, 'title', 'DESC']],
    });
    assert.strictEqual(page.count, 3);
    assert.deepStrictEqual(page.rows.map((user) => user.id), [2, 3]);
    assert.strictEqual(page.rows[0].posts[0].title, 't7');
    assert.strictEqual(page.rows[0].posts[0].Tags[0].word, 'w1');
    const some = await User.findAll({ include: [{ model: Post, as: 'posts', separate: true, limit: 1, order: ['id'] }] });
    assert.strictEqual(some[0].posts.length, 1);
    const tagged = await Tag.findAll({ include: [{ model: Post, where: { title: { [Op.like]: 't1%' } } }], order: ['id'] });
    assert.deepStrictEqual(tagged.map((tag) => tag.Posts.length), [1, 2]);
  });
  await step('sequelize: conditions and aggregates', async () => {
    const found = await User.findAll({
      where: { [Op.or]: [{ name: { [Op.startsWith]: 'an' } }, { id: { [Op.in]: [2] } }], active: true },
      order: [['name', 'DESC']],
    });
    assert.deepStrictEqual(found.map((user) => user.name), ['bob', 'anna']);
    assert.strictEqual(await User.count({ where: { 'extra.a.b': 1 } }), 1);
    assert.strictEqual(await User.count({ where: sequelize.where(sequelize.fn('CHAR_LENGTH', sequelize.col('name')), 4) }), 3);
    assert.strictEqual(await User.sum('score'), 13.5);
    const groups = await Post.findAll({
      attributes: ['userId', [sequelize.fn('COUNT', sequelize.col('id')), 'n']], group: ['userId'], raw: true,
      having: sequelize.literal('n >= 4'), order: ['userId'],
    });
    assert.deepStrictEqual(groups.map((row) => row.n), [4, 4, 4]);
  });
  await step('sequelize: rows change and go', async () => {
    const [changed] = await User.update({ active: false }, { where: { role: 'user' } });
    assert.strictEqual(changed, 4);
    await (await User.findByPk(1)).increment('score', { by: 2 });
    await Post.destroy({ where: { id: [1, 2] } });
    assert.strictEqual(await Post.count(), 10);
    assert.strictEqual(await Post.count({ paranoid: false }), 12);
    await Post.restore({ where: { id: 1 } });
    assert.strictEqual(await Post.destroy({ where: { id: 2 }, force: true, limit: 1 }), 1);
  });
  await step('sequelize: transactions', async () => {
    await assert.rejects(sequelize.transaction(async (transaction) => {
      await Post.destroy({ where: {}, force: true, transaction });
      throw new Error('undone');
    }), /undone/);
    assert.strictEqual(await Post.count({ paranoid: false }), 11);
    await sequelize.transaction({ isolationLevel: Transaction.ISOLATION_LEVELS.READ_COMMITTED }, async (outer) => {
      await Post.findByPk(3, { transaction: outer, lock: outer.LOCK.UPDATE });
      const inner = await sequelize.transaction({ transaction: outer });
      await Post.update({ title: 'inner' }, { where: { id: 3 }, transaction: inner });
      await inner.rollback();
    });
    assert.strictEqual((await Post.findByPk(3)).title, 't2');
  });
}

async function sequelizeDefinitions(sequelize) {
  const tables = sequelize.getQueryInterface();
  await step('sequelize: what there is', async () => {
    assert.ok((await tables.showAllTables()).includes('Users'));
    assert.strictEqual(await tables.tableExists('Nothing'), false);
    const users = await tables.describeTable('Users');
    assert.strictEqual(users.name.type, 'VARCHAR(40)');
    assert.strictEqual(users.id.primaryKey, true);
    assert.strictEqual(users.role.defaultValue, 'user');
    const [key] = await tables.getForeignKeyReferencesForTable('Posts');
    assert.strictEqual(key.columnName, 'userId');
    assert.strictEqual(key.referencedTableName, 'Users');
    assert.ok((await tables.showIndex('Users')).some((index) => index.name === 'users_role_active'));
  });
  await step('sequelize: columns come, change and go', async () => {
    await tables.addColumn('Users', 'nick', { type: DataTypes.STRING(10), after: 'name' });
    await tables.changeColumn('Users', 'nick', { type: DataTypes.STRING(30), defaultValue: 'x' });
    await tables.renameColumn('Users', 'nick', 'handle');
    assert.strictEqual((await tables.describeTable('Users')).handle.type, 'VARCHAR(30)');
    await tables.removeColumn('Users', 'handle');
  });
  await step('sequelize: keys and constraints come and go', async () => {
    await tables.addIndex('Posts', ['title'], { name: 'by_title' });
    await tables.removeIndex('Posts', 'by_title');
    await tables.addConstraint('Posts', { fields: ['title', 'userId'], type: 'unique', name: 'once' });
    await tables.removeConstraint('Posts', 'once');
    await tables.addConstraint('Posts', { fields: ['title'], type: 'check', name: 'named', where: { title: { [Op.ne]: '' } } });
    await sequelize.query('ALTER TABLE Posts DROP CHECK named');
    await tables.createTable('Notes', {
      id: { type: DataTypes.INTEGER, autoIncrement: true, primaryKey: true },
      userId: { type: DataTypes.INTEGER, references: { model: 'Users', key: 'id' }, onDelete: 'SET NULL' },
    });
    const [key] = await tables.getForeignKeyReferencesForTable('Notes');
    await tables.removeConstraint('Notes', key.constraintName);
    assert.deepStrictEqual(await tables.getForeignKeyReferencesForTable('Notes'), []);
    await tables.renameTable('Notes', 'Papers');
    await tables.dropTable('Papers');
  });
  await step('sequelize: everything is dropped', async () => {
    await sequelize.drop();
    assert.deepStrictEqual(await tables.showAllTables(), []);
  });
}

async function main() {
  const admin = knexOf({ client: 'mysql2', connection: server });
  for (const name of ['knex_test', 'sequelize_test']) {
    await admin.raw('DROP DATABASE IF EXISTS ??', [name]);
    await admin.raw('CREATE DATABASE ??', [name]);
  }
  await admin.destroy();
  const knex = knexOf({ client: 'mysql2', connection: { ...server, database: 'knex_test' } });
  await knexDefinitions(knex);
  await knexRows(knex);
  await knex.destroy();
  const sequelize = new Sequelize('sequelize_test', 'root', '', { ...server, dialect: 'mysql', logging: false });
  await sequelizeRows(sequelize, models(sequelize));
  await sequelizeDefinitions(sequelize);
  await sequelize.close();
  console.log(failed.length === 0 ? 'ok' : `${failed.length} steps failed: ${failed.join('; ')}`);
}

main();
