"""The ground floor: errors, settings, files, pickles, keys, blocks of records, words for people."""
