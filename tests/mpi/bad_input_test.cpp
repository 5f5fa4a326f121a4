// SPDX-License-Identifier: BSD-2-Clause
// One wrong argument at a time, of each function: the call ends with the class that the standard
// names, in a line that names rank, function and argument. Each call has a process of its own, so
// that a crash or a hang is a complaint as well.
#include <gtest/gtest.h>
#include <mpi.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace {

using Classes = std::vector<int>;

/// What an argument may be, and what it may not.
template <class T>
struct Choice {
  T good{};
  std::vector<std::pair<T, Classes>> bad;

  void refuse(std::initializer_list<T> values, Classes with) {
    for (T value : values) bad.emplace_back(value, with);
  }
};

/// Which argument of which function.
struct Place {
  std::string_view function;
  std::string_view name;

  bool has(std::string_view part) const { return name.find(part) != std::string_view::npos; }
  /// Without what says only of which kind of object it is.
  std::string_view short_name() const {
    for (std::string_view kind : {"comm_", "type_", "true_"})
      if (name.starts_with(kind)) return name.substr(kind.size());
    return name;
  }
  bool is(std::initializer_list<std::string_view> names) const {
    return std::find(names.begin(), names.end(), name) != names.end();
  }
  bool is_of(std::initializer_list<std::string_view> prefixes) const {
    return std::any_of(prefixes.begin(), prefixes.end(),
                       [this](std::string_view each) { return function.starts_with(each); });
  }
};

/// Handles of all kinds, good ones and freed ones.
struct Handles {
  MPI_Comm cart, graph, distributed_graph, freed_comm;
  MPI_Datatype freed_type, new_type;
  MPI_Op op, freed_op;
  MPI_Group group, freed_group;
  MPI_Info info, freed_info;
  MPI_Errhandler handler, freed_handler;
  MPI_Request request, freed_request;
  int comm_keyval, type_keyval;
};
Handles handles;

void combine(void*, void*, int*, MPI_Datatype*) {}
void hear(MPI_Comm*, int*, ...) {}

void make_handles() {
  const int one = 1;
  static int value;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &one, &one, 0, &handles.cart);
  const int none = 0;
  MPI_Graph_create(MPI_COMM_WORLD, 1, &one, &none, 0, &handles.graph);
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &none, &one, 1, &none, &one, MPI_INFO_NULL, 0,
                                 &handles.distributed_graph);
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  handles.freed_comm = comm;
  MPI_Comm_free(&comm);
  MPI_Datatype type;
  MPI_Type_contiguous(2, MPI_INT, &type);
  handles.freed_type = type;
  MPI_Type_free(&type);
  MPI_Type_contiguous(2, MPI_INT, &handles.new_type);
  MPI_Op op;
  MPI_Op_create(combine, 1, &handles.op);
  MPI_Op_create(combine, 1, &op);
  handles.freed_op = op;
  MPI_Op_free(&op);
  MPI_Group group;
  MPI_Comm_group(MPI_COMM_WORLD, &handles.group);
  MPI_Group_range_incl(handles.group, 0, nullptr, &group);
  MPI_Comm_group(MPI_COMM_SELF, &group);
  handles.freed_group = group;
  MPI_Group_free(&group);
  MPI_Info info;
  MPI_Info_create(&handles.info);
  MPI_Info_set(handles.info, "key", "value");
  MPI_Info_create(&info);
  handles.freed_info = info;
  MPI_Info_free(&info);
  MPI_Comm_create_errhandler(hear, &handles.handler);
  handles.freed_handler = reinterpret_cast<MPI_Errhandler>(
      reinterpret_cast<std::uintptr_t>(handles.handler) ^ 0x10000u);
  MPI_Recv_init(&value, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, &handles.request);
  MPI_Request request;
  MPI_Recv_init(&value, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, &request);
  handles.freed_request = request;
  MPI_Request_free(&request);
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &handles.comm_keyval,
                         nullptr);
  MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, &handles.type_keyval,
                         nullptr);
}

/// A number that was never a handle, and one that is a handle of another kind.
template <class T>
T nobody() {
  return reinterpret_cast<T>(std::uintptr_t{0x7ffff123});
}
template <class T>
T stranger() {
  if constexpr (std::is_same_v<T, MPI_Datatype>)
    return reinterpret_cast<T>(MPI_COMM_WORLD);
  else
    return reinterpret_cast<T>(MPI_INT);
}

int memory[2][64];
int zeros[16];
int ones[16] = {1, 1, 1, 1, 1, 1, 1, 1};

void choose(Choice<MPI_Comm>& out, const Place& at) {
  out.good = MPI_COMM_WORLD;
  if (at.is_of({"MPI_Neighbor_", "MPI_Ineighbor_", "MPI_Cart_coords", "MPI_Cart_get",
                "MPI_Cart_rank", "MPI_Cart_shift", "MPI_Cart_sub", "MPI_Cartdim_get"}))
    out.good = handles.cart;
  if (at.is_of({"MPI_Graph_get", "MPI_Graph_neighbors", "MPI_Graphdims_get"}))
    out.good = handles.graph;
  if (at.is_of({"MPI_Dist_graph_neighbors"})) out.good = handles.distributed_graph;
  out.refuse({MPI_COMM_NULL, handles.freed_comm, nobody<MPI_Comm>(), stranger<MPI_Comm>()},
             {MPI_ERR_COMM});
  if (out.good != MPI_COMM_WORLD) out.refuse({MPI_COMM_WORLD}, {MPI_ERR_TOPOLOGY});
  if (at.function == "MPI_Comm_get_name") out.bad.erase(out.bad.begin());  // it has a name
}
void choose(Choice<MPI_Datatype>& out, const Place& at) {
  out.good = MPI_INT;
  out.refuse(
      {MPI_DATATYPE_NULL, handles.freed_type, nobody<MPI_Datatype>(), stranger<MPI_Datatype>()},
      {MPI_ERR_TYPE});
  if (at.function == "MPI_Type_get_name") out.bad.erase(out.bad.begin());
  if (at.is_of({"MPI_Type_get_contents"})) out.good = handles.new_type;
  // Packing takes it, and a reduction refuses it since no operation is defined on it.
  const bool may_be_new =
      at.is_of({"MPI_Type_", "MPI_Get_", "MPI_Pack", "MPI_Unpack", "MPI_Reduce_local"});
  if (!may_be_new) out.refuse({handles.new_type}, {MPI_ERR_TYPE});
}
void choose(Choice<MPI_Op>& out, const Place&) {
  out.good = MPI_SUM;
  out.refuse({MPI_OP_NULL, handles.freed_op, nobody<MPI_Op>(), stranger<MPI_Op>()}, {MPI_ERR_OP});
}
void choose(Choice<MPI_Group>& out, const Place&) {
  out.good = handles.group;
  out.refuse({MPI_GROUP_NULL, handles.freed_group, nobody<MPI_Group>(), stranger<MPI_Group>()},
             {MPI_ERR_GROUP});
}
void choose(Choice<MPI_Errhandler>& out, const Place&) {
  out.good = handles.handler;
  out.refuse({MPI_ERRHANDLER_NULL, handles.freed_handler, nobody<MPI_Errhandler>(),
              stranger<MPI_Errhandler>()},
             {MPI_ERR_ERRHANDLER, MPI_ERR_ARG});
}
void choose(Choice<MPI_Info>& out, const Place& at) {
  out.good = handles.info;
  out.refuse({handles.freed_info, nobody<MPI_Info>(), stranger<MPI_Info>()}, {MPI_ERR_INFO});
  if (at.is_of({"MPI_Info_"})) out.refuse({MPI_INFO_NULL}, {MPI_ERR_INFO});
}
void choose(Choice<MPI_Request>& out, const Place&) {
  out.good = handles.request;
  out.refuse({handles.freed_request, nobody<MPI_Request>(), stranger<MPI_Request>()},
             {MPI_ERR_REQUEST});
}
void choose(Choice<MPI_Message>& out, const Place&) {
  out.good = MPI_MESSAGE_NO_PROC;
  out.refuse({MPI_MESSAGE_NULL, nobody<MPI_Message>(), stranger<MPI_Message>()}, {MPI_ERR_REQUEST});
}

template <class T>
void choose_number(Choice<T>& out, const Place& at) {
  const T far = -9;
  if (at.has("max_")) {
    out.good = 1;
    out.refuse({far}, {MPI_ERR_ARG});
  } else if (at.has("count") || at.name == "blocklength") {
    out.good = 1;
    out.refuse({far}, {MPI_ERR_COUNT, MPI_ERR_ARG});
  } else if (at.is({"outsize", "insize"})) {
    out.good = sizeof memory[0];
    out.refuse({far}, {MPI_ERR_ARG, MPI_ERR_COUNT});
    out.refuse({0}, {MPI_ERR_TRUNCATE, MPI_ERR_ARG});
  } else {
    out.good = at.is({"stride", "extent"}) ? 8 : 0;
  }
}
void choose(Choice<MPI_Aint>& out, const Place& at) { choose_number(out, at); }
void choose(Choice<int>& out, const Place& at) {
  if (at.is({"dest", "source"}) ||
      (at.name == "rank" && at.is_of({"MPI_Cart_coords", "MPI_Graph_neighbors"}))) {
    out.refuse({1, -9}, {MPI_ERR_RANK});
  } else if (at.has("tag")) {
    out.refuse({-9}, {MPI_ERR_TAG});
  } else if (at.name == "root") {
    out.refuse({1, -9}, {MPI_ERR_ROOT});
  } else if (at.has("keyval")) {
    out.good = at.name == "type_keyval" ? handles.type_keyval : handles.comm_keyval;
    out.refuse({MPI_KEYVAL_INVALID, 54321, MPI_TAG_UB}, {MPI_ERR_KEYVAL});
    if (at.is_of({"MPI_Comm_get", "MPI_Attr_get"})) out.bad.pop_back();
  } else if (at.is({"ndims", "maxdims", "nnodes"})) {
    out.good = 1;
    out.refuse({-9}, {MPI_ERR_ARG, MPI_ERR_DIMS});
  } else if (at.has("degree") || at.is({"maxindex", "maxedges", "maxneighbors"})) {
    out.good = 1;
    out.refuse({-9}, {MPI_ERR_ARG});
  } else if (at.name == "n") {
    out.good = at.is_of({"MPI_Info"}) ? 0 : 1;
    out.refuse({-9}, {MPI_ERR_ARG});
  } else if (at.name == "order") {
    out.good = MPI_ORDER_C;
    out.refuse({0}, {MPI_ERR_ARG});
  } else if (at.name == "split_type") {
    out.good = MPI_COMM_TYPE_SHARED;
    out.refuse({7}, {MPI_ERR_ARG});
  } else if (at.name == "typeclass") {
    out.good = MPI_TYPECLASS_INTEGER;
    out.refuse({7}, {MPI_ERR_ARG});
  } else if (at.name == "direction") {
    out.refuse({1, -1}, {MPI_ERR_ARG, MPI_ERR_DIMS});
  } else if (at.name == "color") {
    out.refuse({-9}, {MPI_ERR_ARG});
  } else if (at.is({"errorcode", "errorclass"})) {
    out.good = MPI_ERR_RANK;
    out.refuse({-9, 1 << 30}, {MPI_ERR_ARG});
  } else if (at.is_of({"MPI_Type_match_size"})) {
    out.good = 4;
    out.refuse({3, -9}, {MPI_ERR_ARG});
  } else if (at.is_of({"MPI_Type_create_darray"})) {
    out.good = at.name == "size" ? 1 : 0;
    out.refuse({-9}, {MPI_ERR_ARG, MPI_ERR_RANK});
  } else {
    choose_number(out, at);
  }
}

template <class T>
struct Nothing;
template <class Result, class... Arguments>
struct Nothing<Result(Arguments...)> {
  static Result call(Arguments...) { return Result(); }
};
template <class Result, class... Arguments>
struct Nothing<Result(Arguments..., ...)> {
  static Result call(Arguments..., ...) { return Result(); }
};

/// An address of things that are there, or none.
template <class T>
void choose(Choice<T*>& out, const Place& at) {
  using Thing = std::remove_const_t<T>;
  if constexpr (std::is_function_v<T>) {
    out.good = Nothing<T>::call;
    // A copy or a deletion may do nothing.
    if (!at.has("copy") && !at.has("delete")) out.refuse({nullptr}, {MPI_ERR_ARG});
  } else if constexpr (std::is_same_v<Thing, MPI_Status>) {
    static MPI_Status statuses[2];
    out.good = statuses;
    if (std::is_const_v<T> || at.is_of({"MPI_Test_cancelled"}))
      out.refuse({nullptr}, {MPI_ERR_ARG});
  } else if constexpr (std::is_void_v<Thing>) {
    out.good = memory[at.has("recv") || at.has("out")];
    if (at.has("buf") && !at.is({"buffer"})) out.refuse({nullptr}, {MPI_ERR_BUFFER, MPI_ERR_ARG});
    if (at.is({"baseptr", "buffer_addr"}) ||
        (at.name == "attribute_val" && at.function.find("_get") != std::string_view::npos))
      out.refuse({nullptr}, {MPI_ERR_ARG});
  } else if constexpr (std::is_same_v<Thing, char*>) {
    out.good = nullptr;  // of no words
  } else if constexpr (std::is_same_v<Thing, char>) {
    static char text[1024];
    if constexpr (std::is_const_v<T>)
      out.good = at.name == "datarep" ? "external32" : "key";
    else
      out.good = text;
    out.refuse({nullptr},
               {MPI_ERR_ARG, MPI_ERR_INFO_KEY, MPI_ERR_INFO_VALUE, MPI_ERR_UNSUPPORTED_DATAREP});
  } else if constexpr (std::is_same_v<Thing, int>) {
    const bool is_nothing = at.has("displ") || at.has("ranks") || at.has("starts") ||
                            at.has("position") || at.has("coords") || at.has("remain") ||
                            at.is({"edges", "sources", "destinations"});
    out.good = is_nothing ? zeros : ones;
    static int distributions[16] = {MPI_DISTRIBUTE_BLOCK};
    static int defaults[16] = {MPI_DISTRIBUTE_DFLT_DARG};
    if (at.has("distribs")) out.good = distributions;
    if (at.has("dargs")) out.good = defaults;
    // Weights may be nobody's wish.
    if (!at.has("weights") || !at.is_of({"MPI_Dist_graph_neighbors"}))
      out.refuse({nullptr}, {MPI_ERR_ARG});
  } else if constexpr (std::is_pointer_v<Thing>) {
    // A handle: what it says matters where it is read.
    const bool is_read = std::is_const_v<T> || at.has("array_of_requests") ||
                         (at.name == "message" && at.function.ends_with("recv")) ||
                         at.is_of({"MPI_Wait", "MPI_Test", "MPI_Start", "MPI_Cancel"}) ||
                         at.function.ends_with("_free") || at.function == "MPI_Type_commit";
    static std::vector<Thing*> kept;
    Choice<Thing> one;
    choose(one, at);
    out.good = kept.emplace_back(new Thing[2]{one.good, one.good});
    out.refuse({nullptr}, {MPI_ERR_ARG});
    if (std::is_same_v<Thing, MPI_Message> || std::is_same_v<Thing, MPI_Request>)
      out.bad.back().second.push_back(MPI_ERR_REQUEST);
    if (is_read)
      for (const auto& [value, classes] : one.bad)
        out.bad.emplace_back(kept.emplace_back(new Thing[2]{value, one.good}), classes);
  } else {
    static std::remove_const_t<T> things[16];
    out.good = things;
    // Of what there is none of, nothing is written.
    if (!at.is_of({"MPI_Type_get_contents"})) out.refuse({nullptr}, {MPI_ERR_ARG});
  }
}

struct End {
  int status;
  std::string said;
};

template <class Call>
End run(Call call) {
  int ends[2];
  if (pipe(ends) != 0) return {-1, "no pipe"};
  const pid_t pid = fork();
  if (pid == 0) {
    dup2(ends[1], STDERR_FILENO);
    alarm(10);
    call();
    _exit(255);
  }
  close(ends[1]);
  End end{-1, ""};
  char bytes[512];
  for (ssize_t got; (got = read(ends[0], bytes, sizeof bytes)) > 0;)
    end.said.append(bytes, static_cast<std::size_t>(got));
  close(ends[0]);
  waitpid(pid, &end.status, 0);
  return end;
}

std::string complaint(const Place& at, const Classes& classes, const End& end) {
  if (WIFSIGNALED(end.status))
    return "ended by signal " + std::to_string(WTERMSIG(end.status)) + ": " + end.said;
  if (WEXITSTATUS(end.status) == 255) return "is taken for good";
  if (std::find(classes.begin(), classes.end(), WEXITSTATUS(end.status)) == classes.end())
    return "is of another class: " + end.said;
  if (!end.said.starts_with("rank 0 of 1: " + std::string(at.function) + ": ") ||
      end.said.find(at.short_name()) == std::string::npos)
    return "is not named: " + end.said;
  return {};
}

template <std::size_t kIndex, class... Arguments>
void try_argument(std::string_view function, const std::vector<std::string_view>& names,
                  int (*call)(Arguments...), const std::tuple<Choice<Arguments>...>& choices) {
  const Place at{function, names[kIndex]};
  for (const auto& [value, classes] : std::get<kIndex>(choices).bad) {
    auto arguments =
        std::apply([](const auto&... each) { return std::tuple(each.good...); }, choices);
    std::get<kIndex>(arguments) = value;
    const std::string wrong = complaint(at, classes, run([&] { std::apply(call, arguments); }));
    if (!wrong.empty()) ADD_FAILURE() << function << ": `" << at.name << "` " << wrong;
  }
}

template <std::size_t... kIndices, class... Arguments>
void try_all(std::index_sequence<kIndices...>, std::string_view function,
             const std::vector<std::string_view>& names, int (*call)(Arguments...)) {
  std::tuple<Choice<Arguments>...> choices;
  (choose(std::get<kIndices>(choices), Place{function, names[kIndices]}), ...);
  (try_argument<kIndices>(function, names, call, choices), ...);
}

template <class... Arguments>
void try_function(std::string_view function, std::string_view words, int (*call)(Arguments...)) {
  std::vector<std::string_view> names;
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(' '), words.size());
    names.push_back(words.substr(0, end));
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  ASSERT_EQ(names.size(), sizeof...(Arguments)) << function;
  try_all(std::index_sequence_for<Arguments...>(), function, names, call);
}

#define FUNCTION(name, arguments) \
  TEST(BadInput, Of##name) { try_function(#name, arguments, name); }
#include "tests/mpi/bad_input.inc"

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (MPI_Init(&argc, &argv) != MPI_SUCCESS) return 1;
  make_handles();
  const int failed = RUN_ALL_TESTS();
  MPI_Finalize();
  return failed;
}
