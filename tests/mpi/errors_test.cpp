// SPDX-License-Identifier: BSD-2-Clause
// Error handlers, classes, codes and texts (MPI 5.0 chapter 9), and infos (chapter 10).
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "mpi_shim/core/errors.hpp"
#include "tests/mpi/no_ranks.hpp"

namespace {

class Errors : public ::testing::Test {
 protected:
  void SetUp() override { no_ranks::begin(); }
  void TearDown() override { no_ranks::end(); }
};
using ErrorsDeath = Errors;
using Infos = Errors;

std::string text_of(int code) {
  char text[MPI_MAX_ERROR_STRING];
  int length = -1;
  EXPECT_EQ(MPI_Error_string(code, text, &length), MPI_SUCCESS);
  EXPECT_EQ(static_cast<std::size_t>(length), std::strlen(text));
  return text;
}

TEST_F(Errors, HaveANameAndAText) {
  EXPECT_EQ(text_of(MPI_SUCCESS).find("MPI_SUCCESS: "), 0u);
  EXPECT_EQ(text_of(MPI_ERR_RANK).find("MPI_ERR_RANK: "), 0u);
  EXPECT_EQ(text_of(MPI_ERR_PROC_ABORTED).find("MPI_ERR_PROC_ABORTED: "), 0u);
  EXPECT_EQ(text_of(MPI_ERR_ABI).find("MPI_ERR_ABI: "), 0u);
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  EXPECT_EQ(MPI_Error_string(-5, text, &length), MPI_ERR_ARG);
  EXPECT_EQ(MPI_Error_string(MPI_ERR_ABI + 1, text, &length), MPI_ERR_ARG);
}

TEST_F(Errors, ProgramsAddClassesCodesAndTexts) {
  int error_class = 0, code = 0, found = 0;
  ASSERT_EQ(MPI_Add_error_class(&error_class), MPI_SUCCESS);
  EXPECT_EQ(error_class, MPI_ERR_LASTCODE + 1);
  ASSERT_EQ(MPI_Add_error_code(error_class, &code), MPI_SUCCESS);
  EXPECT_EQ(*vmpi::last_used_code(), code);
  EXPECT_EQ(MPI_Error_class(code, &found), MPI_SUCCESS);
  EXPECT_EQ(found, error_class);
  EXPECT_EQ(text_of(code), "");
  EXPECT_EQ(MPI_Add_error_string(code, "the program's own"), MPI_SUCCESS);
  EXPECT_EQ(text_of(code), "the program's own");
  const std::string longest(MPI_MAX_ERROR_STRING + 9, 'e');
  EXPECT_EQ(MPI_Add_error_string(code, longest.c_str()), MPI_SUCCESS);
  EXPECT_EQ(text_of(code), longest.substr(0, MPI_MAX_ERROR_STRING - 1));
  EXPECT_EQ(MPI_Add_error_string(MPI_ERR_RANK, "mine"), MPI_ERR_ARG);
  EXPECT_EQ(MPI_Add_error_code(code, &found), MPI_ERR_ARG);
  EXPECT_EQ(MPI_Add_error_code(MPI_ERR_IO, &found), MPI_SUCCESS);
  EXPECT_EQ(MPI_Remove_error_class(error_class), MPI_ERR_ARG);
  EXPECT_EQ(MPI_Remove_error_string(code), MPI_SUCCESS);
  EXPECT_EQ(MPI_Remove_error_code(code), MPI_SUCCESS);
  EXPECT_EQ(MPI_Remove_error_class(error_class), MPI_SUCCESS);
  EXPECT_EQ(MPI_Error_class(error_class, &found), MPI_ERR_ARG);
}

int handled = 0;
MPI_Comm handled_comm = MPI_COMM_NULL;
void handle(MPI_Comm* comm, int* code, ...) {
  ++handled;
  handled_comm = *comm;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  EXPECT_EQ(MPI_Error_string(*code, text, &length), MPI_SUCCESS);  // it may call us
}

TEST_F(Errors, AreToldToTheHandlerOfTheCommunicator) {
  MPI_Errhandler handler, got;
  ASSERT_EQ(MPI_Comm_create_errhandler(handle, &handler), MPI_SUCCESS);
  ASSERT_EQ(MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler), MPI_SUCCESS);
  const MPI_Errhandler freed = handler;
  ASSERT_EQ(MPI_Errhandler_free(&handler), MPI_SUCCESS);
  EXPECT_EQ(handler, MPI_ERRHANDLER_NULL);
  // Freed, yet the communicator has it.
  EXPECT_EQ(MPI_Comm_set_errhandler(MPI_COMM_SELF, freed), MPI_ERR_ERRHANDLER);
  handled = 0;
  int position = 0;
  EXPECT_EQ(MPI_Pack(&position, -1, MPI_INT, &position, 4, &position, MPI_COMM_WORLD),
            MPI_ERR_COUNT);
  EXPECT_EQ(handled, 1);
  EXPECT_EQ(handled_comm, MPI_COMM_WORLD);
  EXPECT_EQ(MPI_Comm_call_errhandler(MPI_COMM_WORLD, MPI_ERR_IO), MPI_SUCCESS);
  EXPECT_EQ(handled, 2);
  ASSERT_EQ(MPI_Comm_get_errhandler(MPI_COMM_WORLD, &got), MPI_SUCCESS);
  EXPECT_EQ(got, freed);
  EXPECT_EQ(MPI_Errhandler_free(&got), MPI_SUCCESS);
  ASSERT_EQ(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), MPI_SUCCESS);
  ASSERT_EQ(MPI_Comm_get_errhandler(MPI_COMM_WORLD, &got), MPI_SUCCESS);
  EXPECT_EQ(got, MPI_ERRORS_RETURN);
  EXPECT_EQ(MPI_Comm_set_errhandler(MPI_COMM_NULL, got), MPI_ERR_COMM);
}

TEST_F(Errors, HandlersOfOneFunctionAreOne) {
  for (int i = 0; i < 3000; ++i) {
    MPI_Errhandler handler;
    ASSERT_EQ(MPI_Comm_create_errhandler(handle, &handler), MPI_SUCCESS);
    ASSERT_EQ(MPI_Comm_set_errhandler(MPI_COMM_SELF, handler), MPI_SUCCESS);
    ASSERT_EQ(MPI_Errhandler_free(&handler), MPI_SUCCESS);
  }
  ASSERT_EQ(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN), MPI_SUCCESS);
}

TEST_F(ErrorsDeath, FatalOnesNameRankFunctionArgumentAndClass) {
  no_ranks::self().error_handler = vmpi::number_of(MPI_ERRORS_ARE_FATAL);
  MPI_Datatype type;
  EXPECT_EXIT((void)MPI_Type_contiguous(-3, MPI_INT, &type),
              ::testing::ExitedWithCode(MPI_ERR_COUNT),
              "^rank 2 of 4: MPI_Type_contiguous: count is -3 \\(MPI_ERR_COUNT\\)\n$");
  EXPECT_EXIT((void)MPI_Type_contiguous(1, MPI_DATATYPE_NULL, &type),
              ::testing::ExitedWithCode(MPI_ERR_TYPE), "oldtype is MPI_DATATYPE_NULL");
  EXPECT_EXIT((void)MPI_Comm_call_errhandler(MPI_COMM_SELF, MPI_ERR_IO),
              ::testing::ExitedWithCode(MPI_ERR_IO), "MPI_ERR_IO");
  EXPECT_EXIT(vmpi::abort_all(7, "MPI_Abort was called with %d", 7), ::testing::ExitedWithCode(7),
              "^rank 2 of 4: MPI_Abort was called with 7\n$");
}

TEST_F(ErrorsDeath, BeforeInitAndAfterFinalizeTheyAreFatal) {
  no_ranks::end();
  MPI_Datatype type;
  EXPECT_EXIT((void)MPI_Type_contiguous(1, MPI_INT, &type), ::testing::ExitedWithCode(MPI_ERR_TYPE),
              "^after MPI_Finalize: MPI_Type_contiguous: ");
}

TEST_F(Infos, KeepKeysInOrder) {
  MPI_Info info, copy;
  ASSERT_EQ(MPI_Info_create(&info), MPI_SUCCESS);
  ASSERT_EQ(MPI_Info_set(info, "b", "1"), MPI_SUCCESS);
  ASSERT_EQ(MPI_Info_set(info, "a", "22"), MPI_SUCCESS);
  ASSERT_EQ(MPI_Info_set(info, "b", "333"), MPI_SUCCESS);
  ASSERT_EQ(MPI_Info_dup(info, &copy), MPI_SUCCESS);
  ASSERT_EQ(MPI_Info_delete(info, "b"), MPI_SUCCESS);
  EXPECT_EQ(MPI_Info_delete(info, "b"), MPI_ERR_INFO_NOKEY);
  int n = 0, flag = -1, length = 0;
  EXPECT_EQ(MPI_Info_get_nkeys(copy, &n), MPI_SUCCESS);
  EXPECT_EQ(n, 2);
  char key[MPI_MAX_INFO_KEY], value[8] = "xxxxxxx";
  EXPECT_EQ(MPI_Info_get_nthkey(copy, 0, key), MPI_SUCCESS);
  EXPECT_STREQ(key, "b");
  EXPECT_EQ(MPI_Info_get_nthkey(copy, 2, key), MPI_ERR_ARG);
  EXPECT_EQ(MPI_Info_get(copy, "b", 2, value, &flag), MPI_SUCCESS);
  EXPECT_EQ(flag, 1);
  EXPECT_STREQ(value, "33");
  EXPECT_EQ(MPI_Info_get_valuelen(copy, "b", &length, &flag), MPI_SUCCESS);
  EXPECT_EQ(length, 3);
  length = 2;
  EXPECT_EQ(MPI_Info_get_string(copy, "b", &length, value, &flag), MPI_SUCCESS);
  EXPECT_EQ(length, 4);
  EXPECT_STREQ(value, "3");
  length = 0;
  EXPECT_EQ(MPI_Info_get_string(copy, "b", &length, nullptr, &flag), MPI_SUCCESS);
  EXPECT_EQ(length, 4);
  EXPECT_EQ(MPI_Info_get(copy, "c", 2, value, &flag), MPI_SUCCESS);
  EXPECT_EQ(flag, 0);
  const MPI_Info freed = info;
  EXPECT_EQ(MPI_Info_free(&info), MPI_SUCCESS);
  EXPECT_EQ(info, MPI_INFO_NULL);
  EXPECT_EQ(MPI_Info_get_nkeys(freed, &n), MPI_ERR_INFO);
  EXPECT_EQ(MPI_Info_free(&copy), MPI_SUCCESS);
}

TEST_F(Infos, RefuseWhatIsTooLong) {
  MPI_Info info;
  ASSERT_EQ(MPI_Info_create(&info), MPI_SUCCESS);
  const std::string key(MPI_MAX_INFO_KEY, 'k'), value(MPI_MAX_INFO_VAL, 'v');
  EXPECT_EQ(MPI_Info_set(info, "", "v"), MPI_ERR_INFO_KEY);
  EXPECT_EQ(MPI_Info_set(info, key.c_str(), "v"), MPI_ERR_INFO_KEY);
  EXPECT_EQ(MPI_Info_set(info, key.c_str() + 1, value.c_str()), MPI_ERR_INFO_VALUE);
  EXPECT_EQ(MPI_Info_set(info, key.c_str() + 1, value.c_str() + 1), MPI_SUCCESS);
  EXPECT_EQ(MPI_Info_set(MPI_INFO_NULL, "k", "v"), MPI_ERR_INFO);
  EXPECT_EQ(MPI_Info_free(&info), MPI_SUCCESS);
}

TEST_F(Infos, TheEnvironmentTellsOfTheProgramAndStaysAsItIs) {
  char value[MPI_MAX_INFO_VAL];
  int flag = 0;
  EXPECT_EQ(MPI_Info_get(MPI_INFO_ENV, "maxprocs", 100, value, &flag), MPI_SUCCESS);
  EXPECT_STREQ(value, "4");
  EXPECT_EQ(MPI_Info_get(MPI_INFO_ENV, "command", 1000, value, &flag), MPI_SUCCESS);
  EXPECT_EQ(flag, 1);
  EXPECT_NE(std::string(value).find("unit_mpi"), std::string::npos);
  EXPECT_EQ(MPI_Info_set(MPI_INFO_ENV, "command", "x"), MPI_ERR_INFO);
  MPI_Info info = MPI_INFO_ENV;
  EXPECT_EQ(MPI_Info_free(&info), MPI_ERR_INFO);
}

}  // namespace
