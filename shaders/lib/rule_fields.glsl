// Fields of a RowChoice (backend/choice.h), in words.
const uint kRuleScale = 1u, kRuleTopK = 2u, kRuleTopP = 3u, kRuleCutoffHigh = 6u, kRuleCutoffLow = 7u,
           kRuleRepetition = 8u, kRuleFrequency = 9u, kRulePresence = 10u, kRuleSequence = 11u,
           kRuleNoise = 12u, kRuleInverseSoftness = 14u;
