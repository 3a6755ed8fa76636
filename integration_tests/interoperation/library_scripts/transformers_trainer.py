"""Fine-tune a small classifier with `Trainer`, which calls `torch.compile` itself."""

import tempfile

import torch
import transformers
from transformers import Trainer, TrainingArguments


class Texts(torch.utils.data.Dataset):
    def __len__(self):
        return 16

    def __getitem__(self, index):
        ids = torch.arange(6) + index
        return {"input_ids": ids, "attention_mask": torch.ones(6).long(), "labels": ids[0] % 2}


def main():
    transformers.set_seed(0)
    config = transformers.BertConfig(
        vocab_size=40,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=32,
    )
    model = transformers.BertForSequenceClassification(config)
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder,
            num_train_epochs=1,
            per_device_train_batch_size=4,
            torch_compile=True,
            report_to=[],
            disable_tqdm=True,
            use_cpu=True,
            save_strategy="no",
            logging_strategy="no",
        )
        trainer = Trainer(model, arguments, train_dataset=Texts(), eval_dataset=Texts())
        trained = trainer.train()
        evaluated = trainer.evaluate()
    print(f"loss {trained.training_loss:.4f}, evaluated {evaluated['eval_loss']:.4f}")


if __name__ == "__main__":
    main()
