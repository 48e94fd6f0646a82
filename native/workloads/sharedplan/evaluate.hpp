// A second way to each answer: one query at a time, by plain loops over the tables. It shares no
// code with the operators.
#pragma once

#include "queries.hpp"

namespace atl::sharedplan {

[[nodiscard]] Rows evaluate(const Tables& tables, const Query& query, Statement statement);

// Throws WrongAnswer, which names the interaction and the statement, if an answer is wrong.
void verify(const Tables& tables, const Query& query);

}  // namespace atl::sharedplan
