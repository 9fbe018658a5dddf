"""Similar words: word vectors of a corpus, their nearest neighbors, and the table for MacBERT."""
