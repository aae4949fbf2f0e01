//! The tables.

/// The version of the form, in the file's `user_version`. A file with a higher one is left alone.
pub const VERSION: i64 = 5;

/// The first version that can be listed as it is, by a reader that may not bring the file up to date.
pub const LISTED_FROM: i64 = 4;

/// Bandwidth is a property of the machine, so all that depends on it is kept by host.
pub const TABLES: &str = "
    create table hosts (
        id integer primary key,
        name text not null unique
    );
    create table programs (
        id integer primary key,
        build text not null unique,
        name text not null
    );
    create table runs (
        id integer primary key,
        host integer not null references hosts,
        program integer not null references programs on delete cascade,
        input text not null,
        began_ms integer not null,
        seconds real not null,
        user_seconds real not null,
        system_seconds real not null,
        memory_bytes integer not null,
        outcome text not null
    );
    create index runs_of_program on runs (program, input);
    create table phases (
        host integer not null references hosts,
        program integer not null references programs on delete cascade,
        place integer not null,
        quanta integer not null,
        rate real not null, rate_samples integer not null, rate_valid integer not null,
        bandwidth real not null, bandwidth_samples integer not null, bandwidth_valid integer not null,
        centroid blob not null,
        primary key (host, program, place)
    ) without rowid;
    create table inputs (
        host integer not null references hosts,
        program integer not null references programs on delete cascade,
        input text not null,
        runs integer not null,
        requests real not null,
        primary key (host, program, input)
    ) without rowid;
    create table instructions (
        host integer not null references hosts,
        program integer not null references programs on delete cascade,
        input text not null,
        phase integer not null,
        count real not null,
        primary key (host, program, input, phase)
    ) without rowid;
    create table dropped_pairs (
        host integer not null references hosts,
        one text not null,
        other text not null,
        primary key (host, one, other)
    ) without rowid;
";

/// Added by version 2: for each queue in which programs were chosen, the number of quanta by the reason of their
/// decision.
pub const ADDED_IN_2: &str = "
    create table decisions (
        host integer not null references hosts,
        at_ms integer not null,
        tier text not null,
        reason text not null,
        quanta integer not null
    );
";

/// Added by version 3: how phases follow each other, what the machine can do, and the processor time of an input when
/// its programs were chosen.
pub const ADDED_IN_3: &str = "
    create table transitions (
        host integer not null references hosts,
        program integer not null references programs on delete cascade,
        phase integer not null,
        next integer not null,
        count integer not null,
        primary key (host, program, phase, next)
    ) without rowid;
    create table ceilings (
        host integer not null references hosts,
        name text not null,
        at_ms integer not null,
        value real not null,
        primary key (host, name)
    ) without rowid;
    alter table inputs add column usual_us real not null default 0;
    alter table inputs add column usual_runs integer not null default 0;
    alter table inputs add column chosen_us real not null default 0;
    alter table inputs add column chosen_runs integer not null default 0;
";

/// Added by version 4: the share of a run's processor time in which its programs were chosen.
pub const ADDED_IN_4: &str = "
    alter table runs add column chosen real not null default 0;
";

/// Version 5 added: indexes by which runs are looked up and pruned, limits of what is kept, what was forgotten, how
/// sure a demand is, and how far the times of an input scatter. Times of earlier versions lack that, so both orders are
/// compared anew.
pub const ADDED_IN_5: &str = "
    drop index runs_of_program;
    create index runs_of_input on runs (program, input, host);
    create index runs_by_age on runs (began_ms);
    create index phases_of_program on phases (program);
    create index inputs_of_program on inputs (program, input);
    create index instructions_of_program on instructions (program, input);
    create index transitions_of_program on transitions (program);
    create index pairs_by_other on dropped_pairs (other);
    create index pairs_by_one on dropped_pairs (one);
    create table limits (
        name text primary key,
        value integer not null
    ) without rowid;
    create table forgotten (
        generation integer primary key autoincrement,
        what text not null
    );
    create table pressures (
        host integer not null references hosts,
        program integer not null references programs on delete cascade,
        demand real not null,
        error real not null,
        readings integer not null,
        primary key (host, program)
    ) without rowid;
    create index pressures_of_program on pressures (program);
    alter table inputs add column tried integer not null default 0;
    alter table inputs add column usual_variance real not null default 0;
    alter table inputs add column chosen_variance real not null default 0;
    update inputs set usual_us = 0, usual_runs = 0, chosen_us = 0, chosen_runs = 0;
";
