// SPDX-License-Identifier: Apache-2.0
#include "render/redact/redactor.h"

#include <gtest/gtest.h>
#include <numeric>

#include "render/redact/paths.h"

namespace lamina::render {
namespace {

using std::string_view;

// A redactor that has learned some texts, with a key of its own.
class Learned {
 public:
  explicit Learned(const std::vector<std::string>& texts, Secrets secrets = {},
                   const std::vector<std::string>& files = {}) {
    if (secrets.key == HashKey{}) secrets.key = {1, 2};
    redactor_.emplace(secrets);
    for (const std::string& file : files) redactor_->LearnFile(file);
    for (const std::string& text : texts) redactor_->Learn(text);
    redactor_->Ready();
  }
  std::string operator()(string_view text) { return redactor_->Apply(text); }
  Redactor& redactor() { return *redactor_; }

 private:
  std::optional<Redactor> redactor_;
};

std::string Redacted(const std::string& text) { return Learned({text})(text); }

// "path-#/file-#.py" for "path-5bd0e5a1/file-07c1d2f4.py".
std::string Form(string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    bool token = false;
    for (const string_view kind :
         {"path-", "file-", "host-", "user-", "secret-"}) {
      if (text.substr(i).starts_with(kind) &&
          text.substr(i + kind.size(), 8)
                  .find_first_not_of("0123456789abcdef") == string_view::npos &&
          i + kind.size() + 8 <= text.size()) {
        out += std::string(kind) + "#";
        i += kind.size() + 8;
        token = true;
        break;
      }
    }
    if (!token) out += text[i++];
  }
  return out;
}

// Every rule of data/secrets holds its examples.
TEST(RedactorTest, HoldsThePatternsOfSecrets) {
  EXPECT_EQ(rules::SecretTable::BuiltIn()->CheckExamples(),
            std::vector<std::string>());
}

TEST(RedactorTest, ReplacesKeysAndWhatIsSaidByForm) {
  const std::pair<const char*, const char*> kTexts[] = {
      {"hf_AbCdEfGhIjKlMnOpQrStUv", "secret-#"},
      {"key AKIAIOSFODNN7EXAMPLE.", "key secret-#."},
      {"HF_TOKEN=abcdef12", "HF_TOKEN=secret-#"},
      {"wandb_api_key=0123abcd", "wandb_api_key=secret-#"},
      {"Authorization: Bearer eyJhbGciOiJ.x.y",
       "Authorization: Bearer secret-#"},
      {"open %2Fhome%2Falice%2Fx.py", "open path-#"},
      {"by alice@corp", "by user-#@host-#"},
      {"cd ~alice", "cd ~user-#"},
      {"nccl:hostA-17-x", "nccl:host-#"},
  };
  for (const auto& [text, form] : kTexts)
    EXPECT_EQ(Form(Redacted(text)), form) << text << " -> " << Redacted(text);
  // What was found once is found wherever it stands.
  Learned redacted({"HF_TOKEN=abcdef12", "by alice@corp", "nccl:hostA-17-x",
                    "%2Fhome%2Fbobby%2Fx"});
  EXPECT_EQ(Form(redacted("abcdef12 and alice on corp, hostA-17-x, bobby")),
            "secret-# and user-# on host-#, host-#, user-#");
}

TEST(RedactorTest, ReplacesPaths) {
  const std::pair<const char*, const char*> kTexts[] = {
      {"/home/alice/proj/model.py(12): forward",
       "path-#/file-#.py(12): forward"},
      {"/home/alice", "path-#"},
      {"see /home/alice/run.", "see path-#."},
      {"/home/alice/a.py:12:3 and /data/x/b.cu",
       "path-#/file-#.py:12:3 and "
       "path-#/file-#.cu"},
      {"a=/scratch/acme/run,b=1", "a=path-#,b=1"},
      {"LD_LIBRARY_PATH=/home/alice/lib:/data/lib/x",
       "LD_LIBRARY_PATH=path-#:path-#"},
      {"-I/home/alice/include -O2", "-Ipath-# -O2"},
      {"/model/x=/data/secret", "/model/x=path-#"},
      {"[\"/home/alice/x.bin\", 3]", "[\"path-#/file-#.bin\", 3]"},
      {"[\\\"/home/alice/x\\\"]", "[\\\"path-#\\\"]"},
      {"\\/home\\/alice\\/x.py", "path-#/file-#.py"},
      {"line\\n/home/alice/x", "line\\npath-#"},
      // Blanks, apostrophes and brackets in names.
      {"/home/alice/my own old proj/x.py", "path-#/file-#.py"},
      {"/home/alice/my proj/x y.py(3): f", "path-#/file-#.py(3): f"},
      {"/home/alice/bob's/x(old)/y.py(3): f", "path-#/file-#.py(3): f"},
      {"C:\\Users\\Alice Smith\\proj\\x.py(3): f", "path-#/file-#.py(3): f"},
      {"C:\\\\Users\\\\alice\\\\x", "path-#"},
      {"D:/runs/x.json.gz is read", "path-#/file-#.json.gz is read"},
      {"\\\\nas7\\team\\x.onnx", "path-#/file-#.onnx"},
      {"file:///home/alice/my proj/x.py", "file://path-#/file-#.py"},
      {"~alice/bin/x and ~/y.sh", "path-# and path-#/file-#.sh"},
      {"../alice/x.py ./y.py", "path-#/file-#.py file-#.py"},
      {"s3://bucket-of-acme/run/x.pt", "s3://host-#/path-#/file-#.pt"},
      {"tcp://10.1.2.3:29500", "tcp://host-#:29500"},
      {"https://alice:pw@git.acme.com/x?t=1", "https://user-#@host-#/path-#"},
      // A folder that nobody knows, found by a file in it.
      {"/acme/run/x.py", "path-#/file-#.py"},
      {"/opt/acme/bin/run", "path-#"},
      {"/usr/local/google/home/alice/x", "path-#"},
      // What is on every machine stays, from packages on too.
      {"/usr/lib/libc.so.6", "/usr/lib/libc.so.6"},
      {"/opt/rocm-6.2/lib/librccl.so", "/opt/rocm-6.2/lib/librccl.so"},
      {"/usr/local/lib/python3.10/dist-packages/torch/_ops.py(3): f",
       "/usr/local/lib/python3.10/dist-packages/torch/_ops.py(3): f"},
      {"/home/alice/venv/lib/python3.10/site-packages/torch/nn/modules/"
       "linear.py(114): forward",
       "path-#/torch/nn/modules/linear.py(114): forward"},
      {"/home/alice/conda/lib/python3.10/threading.py(9): run",
       "path-#/threading.py(9): run"},
      {"C:\\venv\\Lib\\site-packages\\torch\\_ops.py(3): f",
       "path-#/torch/_ops.py(3): f"},
  };
  for (const auto& [text, form] : kTexts)
    EXPECT_EQ(Form(Redacted(text)), form) << text << " -> " << Redacted(text);
}

TEST(RedactorTest, LeavesWhatIsNoPathHostOrUser) {
  const char* const kTexts[] = {
      "jit(f)/layer_3/dot_general",
      "jit(train_step)/jit(main)/transpose(jvp(mlp))/dot",
      "model/layers/0/self_attn",
      "/model/layers.0/self_attn/q_proj/MatMul",
      "/encoder/layer.11/output/Add_1",
      "torch/nn/modules/linear.py(114): forward",
      "<frozen importlib._bootstrap>(241): _call_with_frames_removed",
      "nn.Module: Attention_0",
      "void at::native::vectorized_elementwise_kernel<4, "
      "at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >(int, "
      "at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)",
      "c10::add dead::beef at::fade::ace::add",
      "std::vector<int>::~vector() ~Foo()",
      "void f<(anonymous namespace)::k>(float const*, ...)",
      "cutlass::epilogue::thread::LinearCombination",
      "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64",
      "loop-fusion.2.remat all-reduce-start.1.clone fusion.12.1.4",
      "model.layers.0.mlp.net torch.int layer1.0.net policy.net.org",
      "malloc@plt memcpy@@GLIBC_2.14 torch@v2.1 f@0x12ab",
      "1 / 2 s/step GB/s 3/4 a // b N/A I/O",
      "12:34:56 0000:3B:00.0 ::1 127.0.0.1 localhost:29500",
      "Torch-Compiled Region: 0/0",
      "ProfilerStep#3 [[1, 2], [3]] {\"a\": 1}",
      "nccl:all_reduce_coalesced aten::mm",
      "env://",
      "%fusion.3 = bf16[128,64]{1,0:T(8,128)} fusion(%p.1), kind=kLoop",
  };
  for (const char* const text : kTexts) EXPECT_EQ(Redacted(text), text);
  Learned redacted({"/home/max/x.py", "/home/mm/y.py", "/home/data/z.py"});
  for (const char* const text : {"aten::max", "max_pool2d", "aten::mm", "data"})
    EXPECT_EQ(redacted(text), text);
  EXPECT_EQ(redacted.redactor().counts().common, 3u);
}

TEST(RedactorTest, KnowsUsersByTheirPathsInEveryText) {
  Learned redacted({"run of alice", "/home/alice/x.py", "SLURM_JOB_USER=bob_k",
                    "{\"username\": \"carol\"}", "dave@gpu-17.acme.com",
                    "/tmp/torchinductor_erin/ab/x.py", "~frank/x",
                    "C:\\Users\\Alice Smith\\x"});
  EXPECT_EQ(Form(redacted("run of alice, Alice's, alice_3, ALICE")),
            "run of user-#, user-#'s, user-#_3, user-#");
  EXPECT_EQ(redacted("malice alice2"), "malice alice2");
  EXPECT_EQ(Form(redacted("bob_k carol dave erin frank Alice Smith")),
            "user-# user-# user-# user-# user-# user-#");
  EXPECT_EQ(Form(redacted("alice::kernel<int>")), "user-#::kernel<int>");
  EXPECT_EQ(redacted.redactor().counts().users, 7u);
}

TEST(RedactorTest, KnowsHosts) {
  Learned redacted(
      {"python on ip-10-0-3-4", "HOSTNAME=trainer7", "worker@n01.k8s-a",
       "rank 3 at twshared39868.02.pnb3.facebook.com", "10.20.30.40:1234",
       "[fe80::1ff:fe23:4567:890a]:80", "x.svc.cluster.local"},
      {{"smci350-zts", "node-9.lab.acme.org"}, {}, {}, {}, {}});
  for (const char* const host :
       {"ip-10-0-3-4", "trainer7", "n01.k8s-a", "10.20.30.40",
        "twshared39868.02.pnb3.facebook.com", "twshared39868", "smci350-zts",
        "SMCI350-ZTS", "node-9.lab.acme.org", "node-9",
        "fe80::1ff:fe23:4567:890a", "x.svc.cluster.local"}) {
    EXPECT_EQ(Form(redacted(host)), "host-#") << host;
    EXPECT_EQ(Form(redacted(std::string("pid 3 on ") + host + "_77 ok")),
              "pid 3 on host-#_77 ok");
  }
  // The short name is the host.
  EXPECT_EQ(redacted("node-9"), redacted("node-9.lab.acme.org"));
  EXPECT_NE(redacted("node-9"), redacted("trainer7"));
}

// Four numbers are an address unless the text says that they are a version.
TEST(RedactorTest, TellsVersionsFromAddresses) {
  for (const char* const text :
       {"cuBLAS version 12.8.0.38", "cudnn_version=9.8.0.38",
        "{\"cudnn_version\": \"9.8.0.38\"}",
        "{\\\"CUDNN_VERSION\\\": \\\"9.8.0.38\\\"}", "driverVersion: 12.8.0.38",
        "nvidia-cublas-cu12==12.8.3.14", "Release 12.8.0.38",
        "built with v12.8.0.38 and lib.so.12.8.0.38", "'ver': '12.8.0.38'"})
    EXPECT_EQ(Redacted(text), text);
  const std::pair<const char*, const char*> kAddresses[] = {
      {"12.8.0.38", "host-#"},
      {"driver 12.8.0.38", "driver host-#"},
      {"server: 12.8.0.38", "server: host-#"},
      {"conversion 12.8.0.38", "conversion host-#"},
      {"version of 12.8.0.38", "version of host-#"},
      {"master_addr=12.8.0.38", "master_addr=host-#"},
      {"tcp://12.8.0.38:29500", "tcp://host-#:29500"}};
  for (const auto& [text, form] : kAddresses)
    EXPECT_EQ(Form(Redacted(text)), form) << text;
  // What is an address in one text is one in all.
  Learned both({"version 12.8.0.38", "tcp://12.8.0.38:1"});
  EXPECT_EQ(Form(both("version 12.8.0.38")), "version host-#");
}

TEST(RedactorTest, ReplacesInputFilesByNameAlone) {
  Learned redacted({}, {}, {"runs/gpu-17_42.pt.trace.json.gz", "-", "dumps"});
  EXPECT_EQ(Form(redacted("lamina report runs/gpu-17_42.pt.trace.json.gz")),
            "lamina report path-#/file-#.json.gz");
  EXPECT_EQ(Form(redacted("gpu-17_42.pt.trace.json.gz: 3 events")),
            "file-#.json.gz: 3 events");
  EXPECT_EQ(redacted("the dumps"), "the dumps");
  EXPECT_EQ(Form(redacted.redactor().ApplyFile("dumps")), "path-#");
  EXPECT_EQ(redacted.redactor().ApplyFile("-"), "-");
}

TEST(RedactorTest, GivesEqualTokensToEqualPathsAndOthersToOthers) {
  Learned redacted({"/home/alice/a.py", "C:\\r\\a.py"});
  EXPECT_EQ(redacted("/home/alice/a.py"),
            redacted("file:///home/alice/a.py").substr(7));
  EXPECT_EQ(redacted("C:\\r\\a.py"), redacted("C:/r/a.py"));
  EXPECT_EQ(redacted("C:\\r\\a.py"), redacted("C:\\\\r\\\\a.py"));
  EXPECT_NE(redacted("/home/alice/a.py"), redacted("/home/alice/b.py"));
  // The folder of a file is the folder.
  EXPECT_TRUE(
      redacted("/home/alice/a.py").starts_with(redacted("/home/alice") + "/"));
}

TEST(RedactorTest, TokensDependOnTheKeyAndNotOnTheOrder) {
  const std::vector<std::string> texts = {"/home/alice/x", "/home/bob/y",
                                          "host=n17 user=alice"};
  const std::vector<std::string> reversed(texts.rbegin(), texts.rend());
  Learned one(texts), same(reversed);
  Learned other(texts, {{}, {}, {}, {}, {3, 4}});
  for (const std::string& text : texts) {
    EXPECT_EQ(one(text), same(text));
    EXPECT_NE(one(text), other(text));
    EXPECT_EQ(Form(one(text)), Form(other(text)));
  }
  // Without a key it comes from the texts.
  Redactor a(Secrets{}), b(Secrets{});
  a.Learn("/home/alice/x");
  b.Learn("/home/alice/x");
  b.Learn("more");
  a.Ready();
  b.Ready();
  EXPECT_NE(a.Apply("/home/alice/x"), b.Apply("/home/alice/x"));
}

TEST(RedactorTest, ReplacesNamesThatWereCut) {
  Learned redacted({"/home/alice/x"});
  EXPECT_EQ(redacted("a long text of ali..."), "a long text of ...");
  EXPECT_EQ(redacted("a long text of alone..."), "a long text of alone...");
  EXPECT_EQ(Form(redacted("text /home/ali...")), "text path-#...");
}

TEST(RedactorTest, SurvivesAnyText) {
  uint32_t state = 1;
  const string_view bytes = "/\\~.:@=\"' ()-_a1C\xff\n";
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    for (int i = 0; i < 40; ++i) {
      state = state * 1664525 + 1013904223;
      text += bytes[(state >> 16) % bytes.size()];
    }
    Learned redacted({text});
    redacted(text);
  }
}

TEST(RedactorTest, TakesLongTextsOnce) {
  // With a factor of the length more these would take minutes.
  for (const char* const part :
       {"/x=", "a.", "a:", "/x(b/", "/home/x ", "a@", "\\\\a", "~a/", "://"}) {
    std::string text;
    while (text.size() < 100000) text += part;
    Learned redacted({text});
    redacted(text);
  }
}

TEST(PathsTest, ExtensionsAreThoseOfFiles) {
  EXPECT_EQ(ExtensionOf("a/x.json.gz"), ".json.gz");
  EXPECT_EQ(ExtensionOf("libx.so.12.3"), ".so");
  EXPECT_EQ(ExtensionOf("a.b/x.secret"), "");
  EXPECT_EQ(ExtensionOf(".py"), "");
  EXPECT_EQ(ExtensionOf("x.secret.py"), ".py");
}

}  // namespace
}  // namespace lamina::render
