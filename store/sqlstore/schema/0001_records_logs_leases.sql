create table records (
	collection text    not null,
	tenant     blob    not null,
	scope      integer not null,
	user_id    blob    not null,
	session    blob    not null,
	name       blob    not null,
	value      blob    not null,
	revision   integer not null,
	expires    integer not null,
	due        integer not null,
	primary key (collection, tenant, scope, user_id, session, name)
);
create index records_expires on records (expires) where expires > 0;
create index records_due on records (collection, due) where due > 0;

create table logs (
	id         integer primary key,
	collection text    not null,
	tenant     blob    not null,
	scope      integer not null,
	user_id    blob    not null,
	session    blob    not null,
	name       blob    not null,
	oldest     integer not null,
	next       integer not null,
	unique (collection, tenant, scope, user_id, session, name)
);
create table entries (
	log_id     integer not null,
	position   integer not null,
	at         integer not null,
	data       blob    not null,
	primary key (log_id, position)
);

create table leases (
	collection text    not null,
	tenant     blob    not null,
	scope      integer not null,
	user_id    blob    not null,
	session    blob    not null,
	name       blob    not null,
	holder     blob    not null,
	token      integer not null,
	expires    integer not null,
	primary key (collection, tenant, scope, user_id, session, name)
);
create index leases_expires on leases (expires);

create table counters (
	name  text    primary key,
	value integer not null
);
insert into counters (name, value) values ('revision', 0), ('token', 0);
