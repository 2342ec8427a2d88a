// Fields of a Row (core/rows.h), in words.
const uint kRowWords = 37u, kRowPosition = 1u, kRowSequence = 2u, kRowSlot = 3u, kRowPrefix = 4u,
           kRowPath = 5u;
