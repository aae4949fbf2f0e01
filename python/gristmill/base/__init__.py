"""What every other room stands on: errors, settings, files, pickles, keys, blocks of records, words for people."""
